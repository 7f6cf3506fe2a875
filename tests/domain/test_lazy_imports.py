"""The public names of a package are imported on their first use."""

import subprocess
import sys

from opposable.domain.lazy_imports import import_on_first_use


def test_a_name_is_imported_on_its_first_use_and_stays():
    code = """
import sys, opposable
print("opposable.client" in sys.modules, "Client" in vars(opposable))
print(opposable.Client.__module__, "opposable.agent.agent" in sys.modules, "Client" in vars(opposable))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\nopposable.client False True\n"


def test_the_names_are_sorted():
    assert import_on_first_use("opposable", {"client": "b a", "settings": "C"})[1] == ["C", "a", "b"]
