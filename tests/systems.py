"""Tests that only systems like Linux and macOS can pass."""

import os
import sys

import pytest

ON_WINDOWS = sys.platform == "win32" or "LAMA_TEST_WITHOUT_POSIX" in os.environ
posix_only = pytest.mark.skipif(ON_WINDOWS, reason="Windows has no such sockets and limits")
