"""Made-up exports of AMD's profilers: rocprof, rocprofiler-compute, rocprofv3, rocpd and rpd."""

from layouts.basics import COMMAND, ENVIRONMENT, SECRET, layout, write_cells, write_sqlite
from layouts.perfetto_samples import write_rocprofv3, write_systems
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import KERNELS as V3_KERNELS
from layouts.rocprofv3_samples import make_run, write_csv, write_json

V1 = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj"
V1_TIMES = ",DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs"


def v1_cells(n, kernel):
    return [n, kernel + ".kd", 2, 0, n, 77, 77, 4096, 256, 0, 0, 16, 0, 32, 64, "0x0", "0x7f50a7abb600"]


def v1_times(n):
    return [
        10**15 + 10_000 * n,
        10**15 + 10_000 * n + 500,
        10**15 + 10_000 * n + 3_017 + n,
        10**15 + 10_000 * n + 6_000,
        2_517 + n,
    ]


@layout("rocprof results.csv", "rocprof", lines=True, secret=False)
def rocprof_csv(folder, kernel, rows):
    return write_cells(folder / "results.csv", V1 + V1_TIMES, [v1_cells(n, kernel) + v1_times(n) for n in range(rows)])


@layout("rocprof folder", "rocprof", lines=True)
def rocprof_folder(folder, kernel, rows):
    (folder / "run").mkdir()
    write_cells(folder / "run" / "results.csv", V1 + V1_TIMES, [v1_cells(n, kernel) + v1_times(n) for n in range(rows)])
    write_cells(
        folder / "run" / "pass.csv",
        V1 + ",FETCH_SIZE,SQ_WAVES",
        [[*v1_cells(n, kernel), n + 0.5, 4 * n] for n in range(rows)],
    )
    (folder / "run" / "sysinfo.txt").write_text(ENVIRONMENT)
    return folder / "run"


@layout("rocprof results.db", "rocprof")
def rocprof_db(folder, kernel, rows):
    names = (V1 + V1_TIMES).split(",")
    table = [dict(zip(names, v1_cells(n, kernel) + v1_times(n), strict=True)) for n in range(rows)]
    return write_sqlite(folder / "results.db", {"KERN": table, "ENV": [{"value": SECRET}]})


COMPUTE = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem"
COMPUTE += ",Arch_VGPR,Accum_VGPR,SGPR,wave_size,obj,SQ_WAVES,wave_size_1,TCC_HIT[0],Start_Timestamp,End_Timestamp"


@layout("rocprofiler-compute", "rocprof", lines=True)
def rocprof_compute(folder, kernel, rows):
    (folder / "workload").mkdir()
    table = [
        [
            n,
            f"{kernel} [clone .kd]",
            2,
            4096,
            256,
            0,
            0,
            8,
            0,
            16,
            64,
            "0x7f",
            16 * n,
            64,
            3 * n,
            10**15 + 5000 * n,
            10**15 + 5000 * n + 777,
        ]
        for n in range(rows)
    ]
    write_cells(folder / "workload" / "pmc_perf.csv", COMPUTE, table)
    write_cells(folder / "workload" / "sysinfo.csv", "workload_name,command,hostname", [["w", COMMAND, SECRET]])
    return folder / "workload"


def v3_run(kernel, rows):
    """Return a run whose first kernel bears the name; the caller puts the names back."""
    V3_KERNELS[3] = (kernel, *V3_KERNELS[3][1:])
    return make_run(n=rows)


def with_v3_kernel(write):
    def make(folder, kernel, rows):
        before = V3_KERNELS[3]
        try:
            return write(folder, v3_run(kernel, rows))
        finally:
            V3_KERNELS[3] = before

    return make


layout("rocprofv3 csv", "rocprofv3", lines=True, secret=False)(
    with_v3_kernel(lambda folder, run: write_csv(run, folder / "out") or folder / "out")
)
layout("rocprofv3.json", "rocprofv3")(
    with_v3_kernel(lambda folder, run: write_json([run], folder / "run_results.json"))
)
layout("rocprofv3.pftrace", "rocprofv3")(
    with_v3_kernel(lambda folder, run: write_rocprofv3(run, folder / "4242_results.pftrace"))
)
layout("perfetto-trace.proto", "rocprofv3")(
    with_v3_kernel(lambda folder, run: write_systems(run, folder / "perfetto-trace-0.proto"))
)
layout("rocpd 3", "rocpd")(with_v3_kernel(lambda folder, run: write_rocpd(run, folder / "run_results.db")))
layout("rocpd 4", "rocpd")(with_v3_kernel(lambda folder, run: write_rocpd(run, folder / "run.db", "", version="4.1.0")))


@layout("rpd", "rocpd")
def rpd(folder, kernel, rows):
    texts = ["", "KernelExecution", "CopyHostToDevice", kernel, "hipLaunchKernel", COMMAND, "UserMarker", "step"]
    tables = {
        "rocpd_string": [{"id": at, "string": text} for at, text in enumerate(texts, 1)],
        "rocpd_metadata": [{"id": 1, "tag": "schema_version", "value": "2"}, {"id": 2, "tag": "host", "value": SECRET}],
        "rocpd_op": [
            {
                "id": n + 1,
                "gpuId": 0,
                "queueId": 1,
                "sequenceId": n,
                "completionSignal": "",
                "start": 1000 * n + 300,
                "end": 1000 * n + 900,
                "description_id": 1 if n % 4 == 3 else 4,
                "opType_id": 3 if n % 4 == 3 else 2,
            }
            for n in range(rows)
        ],
        "rocpd_api": [
            {
                "id": n + 1,
                "pid": 7,
                "tid": 8,
                "start": 1000 * n,
                "end": 1000 * n + 100,
                "apiName_id": 7 if n % 8 == 7 else 5,
                "args_id": 8 if n % 8 == 7 else 6,
            }
            for n in range(rows)
        ],
        "rocpd_api_ops": [{"id": n + 1, "api_id": n + 1, "op_id": n + 1} for n in range(rows)],
        "rocpd_monitor": [
            {
                "id": n,
                "deviceType": "gpu",
                "deviceId": 0,
                "monitorType": "sclk",
                "start": 100 * n,
                "end": 0,
                "value": str(800 + n),
            }
            for n in range(rows)
        ],
    }
    return write_sqlite(folder / "trace.rpd", tables)
