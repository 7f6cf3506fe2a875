"""Runs a plain llama.cpp server with the embedded model, as the baseline for the gateway."""

import os
import sys
import threading

import xllamacpp

from opposable.models.embedded.weights import QWEN_CODER, find_installed_weights, get_models_directory


def main() -> int:
    """Load the model, print the server's URL, and serve until interrupted."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    path = find_installed_weights(QWEN_CODER, get_models_directory())
    if path is None:
        print("The embedded model is not installed. Download it with: opposable models pull")
        return 1
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 16384
    params.n_parallel = 2
    params.kv_unified = True
    params.use_jinja = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
