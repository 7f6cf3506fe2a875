"""A seccomp filter of the system calls that a sandboxed program may not make.

The filter is a classic BPF program of eight bytes per instruction: code, jump if true, jump if false, value. It
refuses new namespaces, which would give a program privileges inside them, and sockets of unusual families, which
bypass the network namespace (VSOCK reaches the host). It also refuses calls for administrators and debuggers.
"""

import errno
import platform
import struct

_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*: user, pid, net, ipc, uts, cgroup, mount, time
_X32_SYSCALL_BIT = 0x40000000
_CLONE3 = 435
_ALLOWED_SOCKET_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_REFUSED_ON_ALL_MACHINES = (425, 428, 429, 430, 431, 432, 442)  # io_uring_setup and the newer mount calls

_SYSCALL_NUMBERS = {
    "x86_64": (
        0xC000003E,
        56,
        41,
        (272, 308, 165, 166, 155, 101, 310, 311, 321, 298, 323, 248, 249, 250, 175, 313, 246),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        198,
        (97, 268, 40, 39, 41, 117, 270, 271, 280, 241, 282, 217, 218, 219, 105, 273, 104),
    ),
}
"""By machine: audit architecture, numbers of `clone` and `socket`, and the numbers of unshare, setns, mount, umount2, pivot_root,
ptrace, process_vm_readv, process_vm_writev, bpf, perf_event_open, userfaultfd, add_key, request_key, keyctl,
init_module, finit_module, kexec_load."""


def build_filter() -> bytes | None:
    """Return the filter for this machine, None for an unknown architecture."""
    if platform.machine() not in _SYSCALL_NUMBERS:
        return None
    architecture, clone, socket, refused = _SYSCALL_NUMBERS[platform.machine()]
    instructions = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32_SYSCALL_BIT),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),  # a filter cannot read its flags; the C library falls back to clone
    ]
    for number in (*refused, *_REFUSED_ON_ALL_MACHINES):
        instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    instructions += _build_socket_rules(socket)
    instructions += [
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)


def _build_socket_rules(socket_number: int) -> list[tuple[int, int, int, int]]:
    """Return instructions that allow sockets of the usual families only."""
    count = len(_ALLOWED_SOCKET_FAMILIES)
    return [
        (_EQUAL, 0, count + 3, socket_number),
        (_LOAD, 0, 0, 16),
        *((_EQUAL, count - n, 0, family) for n, family in enumerate(_ALLOWED_SOCKET_FAMILIES)),
        (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
