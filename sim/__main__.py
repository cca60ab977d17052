"""Command line of the simulator: ``python -m sim``."""

import signal

if __name__ == "__main__":
    # Until there is something to tidy up, Ctrl-C just ends the program.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sim.cli.main import main

    main()
