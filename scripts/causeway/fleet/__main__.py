"""Fleet mode's programs: `python -m causeway.fleet PROGRAM ...` with `agent`, `server`, `tokens`, `read` or `overhead`.

They run from the folder `scripts/`, or with it on PYTHONPATH.
"""

import argparse
import json
from pathlib import Path

from causeway.core.logs import failing_clearly


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="causeway.fleet", description=__doc__.splitlines()[0], allow_abbrev=False)
    programs = parser.add_subparsers(dest="program", required=True)
    agent = programs.add_parser("agent", help="send one protected report of an export's tables")
    agent.add_argument("--tables", type=Path, required=True, help="folder of one export's normalised tables")
    agent.add_argument("--pin", required=True, help="the designer's public key, 64 hex digits, published elsewhere")
    agent.add_argument("--token", type=Path, required=True, help="file with a token from the issuer")
    reader = programs.add_parser("read", help="end the epoch and read what may be released")
    reader.add_argument("--own", type=Path, required=True, help="the designer's folder")
    reader.add_argument("--out", type=Path, required=True, help="folder for the release and its tables")
    for part in (agent, reader):
        part.add_argument("--public", type=Path, required=True, help="the deployment's public folder")
        part.add_argument(
            "--ports",
            type=port,
            nargs=2,
            required=True,
            metavar=("LEADER", "HELPER"),
            help="ports on the loopback address",
        )
    server = programs.add_parser("server", help="run one of the two servers")
    server.add_argument("--role", choices=["leader", "helper"], required=True)
    server.add_argument("--folder", type=Path, required=True, help="the server's own folder")
    server.add_argument("--public", type=Path, required=True, help="the deployment's public folder")
    server.add_argument("--anchor", type=Path, required=True, help="file elsewhere that remembers the ledger's head")
    server.add_argument(
        "--ports", type=port, nargs=2, required=True, metavar=("OWN", "OTHER"), help="ports on the loopback address"
    )
    tokens = programs.add_parser("tokens", help="give a user a token of an epoch")
    tokens.add_argument("--issuer", type=Path, required=True, help="the issuer's folder")
    tokens.add_argument("--user", required=True)
    tokens.add_argument("--epoch", type=int, required=True)
    tokens.add_argument("--out", type=Path, required=True)
    overhead = programs.add_parser("overhead", help="measure what recording launches costs on this machine's GPU")
    overhead.add_argument("--launches", type=int, default=256, help="recorded launches")
    overhead.add_argument("--work-launches", type=int, default=200_000, help="launches of the work that is timed")
    overhead.add_argument("--repeats", type=int, default=20)
    for part in (agent, reader, server, tokens, overhead):
        part.add_argument("--log", help="the log's file; standard error if absent")
    return parser.parse_args(argv)


def port(text: str) -> int:
    """Return a port's number; raises `ValueError`, as argparse expects, for what is none."""
    number = int(text)
    if not 0 < number < 1 << 16:
        raise ValueError(text)
    return number


def main(argv: list[str] | None = None) -> None:
    """Run a program."""
    options = arguments(argv)
    with failing_clearly(options.log):
        if options.program == "agent":
            from causeway.fleet.deployment.agent import read_tokens, report

            token = read_tokens(options.token)[0]
            kept = options.token.with_name(f"{options.token.name}.messages")
            ports = tuple(options.ports)
            print(json.dumps(report(options.tables, options.public, token, ports, options.pin, kept=kept)))
        elif options.program == "server":
            from causeway.fleet.deployment.server import ServerOptions, serve

            given = {name: getattr(options, name) for name in ("role", "folder", "public", "anchor")}
            serve(ServerOptions(**given, port=options.ports[0], peer_port=options.ports[1]))
        elif options.program == "tokens":
            from causeway.fleet.deployment.deploy import give

            give(options.issuer, options.user, options.epoch, options.out)
        elif options.program == "overhead":
            from causeway.fleet.overhead import measure_on_gpu

            print(json.dumps(measure_on_gpu(options.launches, options.work_launches, options.repeats)))
        else:
            from causeway.fleet.deployment.reader import read

            read(options.public, options.own, tuple(options.ports), options.out)


if __name__ == "__main__":
    main()
