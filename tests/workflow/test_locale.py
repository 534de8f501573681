"""Jobs run in one locale, whatever the user's: MPI's network library does not start under a Turkish one."""

from support import ROOT, run_snakemake


def test_a_job_has_the_workflows_locale_and_not_the_users(tmp_path, monkeypatch):
    lines = (
        f'include: "{ROOT / "Snakefile"}"',
        "rule say:",
        '    output: "said"',
        '    shell: "echo $LC_ALL > {output}"',
    )
    (tmp_path / "Snakefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    run_snakemake(tmp_path, "--cores", "1", "said", root=tmp_path)
    assert (tmp_path / "said").read_text() == "C.UTF-8\n"
