#!/bin/bash
# Records all experiments on a machine with an NVIDIA GPU, PyTorch, CuPy, JAX and Nsight Compute: bash record.sh FOLDER
# Each part has a time limit, and none stops the others.
folder=$1
here=$(dirname "$0")
mkdir -p "$folder"
nvidia-smi --query-gpu=timestamp,index,power.draw,clocks.sm,clocks.mem,temperature.gpu,utilization.gpu,clocks_event_reasons.active \
    --format=csv -lms 100 >"$folder/nvidia-smi.csv" &
telemetry=$!
timeout 240 python3 -W ignore "$here/traced_launches.py" "$folder"
kill $telemetry
timeout 130 python3 -W ignore "$here/further_launches.py" "$folder"
timeout 90 python3 -W ignore "$here/third_launches.py" "$folder"
mkdir -p "$folder/libraries"
timeout 180 python3 -W ignore "$here/library_programs.py" "$folder/libraries"
timeout 90 python3 -W ignore "$here/later_library_programs.py" "$folder/libraries"
XLA_PYTHON_CLIENT_PREALLOCATE=false timeout 60 python3 "$here/stepped_in_jax.py" "$folder/jax"
sections=(SpeedOfLight MemoryWorkloadAnalysis WarpStateStats InstructionStats LaunchStats Occupancy)
timeout 280 ncu "${sections[@]/#/--section=}" --clock-control none --kernel-name-base function \
    --kernel-name 'regex:^(gather|conflict|add_atomically)$' --export "$folder/counters" --force-overwrite \
    python3 -W ignore "$here/counters_of_launches.py" "$folder/counters.arms.json" 150
ncu --import "$folder/counters.ncu-rep" --csv --page raw --print-units base >"$folder/counters.csv"
