"""Program that serves a GGUF file with llama.cpp until its standard input ends.

`LocalModel` starts it by its path, so it imports nothing of this package. The first line of the input has the fields
of llama.cpp's parameters as JSON. The program prints the address of the server when the weights are loaded.
"""

import json
import os
import signal
import sys

# Spinning threads become very slow as soon as another process needs a core (measured: 2 tokens per second instead of
# 17). Sleeping threads are 40 % slower at best, but never that slow. Read when the library loads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
MISSING_LIBRARY_EXIT_CODE = 3

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a signal to the whole service: it may still need the model
    try:
        import xllamacpp
    except ImportError:
        sys.exit(MISSING_LIBRARY_EXIT_CODE)
    try:
        fields = json.loads(sys.stdin.readline())
        params = xllamacpp.CommonParams()
        params.model.path = fields.pop("path")
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = fields.pop("threads")
        # llama.cpp repacks the weights for the processor. A mapped file would stay in memory too (0.6 GB).
        params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
        params.cache_ram_mib = 256  # for prompts of earlier requests; the default is 8 GiB, which a long session fills
        params.kv_unified = params.use_jinja = True
        params.warmup, params.verbosity = False, -1
        for name, value in fields.items():
            setattr(params, name, value)
        server = xllamacpp.Server(params)
        print(server.listening_address, flush=True)
        sys.stdin.read()
    except (RuntimeError, ValueError, OSError):  # not loaded, or the caller has ended
        os._exit(1)
    os._exit(0)  # the destructor of a server waits for its threads
