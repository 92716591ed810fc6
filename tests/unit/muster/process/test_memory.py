"""Memory that is free goes back to the kernel."""

import platform
import subprocess
import sys
import textwrap

import pytest

MIB = 1024 * 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep less")
def test_what_is_free_goes_back() -> None:
    """Of 64 MiB in small pieces, the last of which is in use: without being told, the C library keeps them all."""
    story = """
        from pathlib import Path
        from muster.process import memory

        def resident() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        memory.share_arenas()
        pieces = [bytes(2000) for _ in range(32 * 1024)]
        last = pieces[-1]
        pieces.clear()
        before = resident()
        memory.give_back()
        print(before - resident())
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(story)], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 32 * MIB
