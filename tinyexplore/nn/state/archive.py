"""Reads the central directory of a zip archive, and checks its entries before they cost time or memory.

It supports archives whose members are not compressed (torch.save writes these). The standard library's `zipfile` reads
as many entries as a file claims to have.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_END = struct.Struct("<4s4H2LH")  # "end of central directory", without its comment
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_MEMBERS = 100_000
_LONGEST_COMMENT = 0xFFFF
_STORED = 0
_ENCRYPTED = 1


class ArchiveError(ValueError):
    """Raised for a zip archive that is damaged, or has unsupported features."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive.

    name: its name.
    header: the offset of its local header, in bytes.
    size: its size in bytes.
    is_plain: whether it is stored without compression.
    """

    name: str
    header: int
    size: int
    is_plain: bool


def read_members(raw: memoryview) -> dict[str, Member]:
    """Returns the members by name, in the order of the central directory."""
    count, start, size = _find_directory(raw)
    if count > _MAX_MEMBERS:
        raise ArchiveError(f"it has {count} members, more than {_MAX_MEMBERS}")
    directory = bytes(raw[start : start + size])
    members: dict[str, Member] = {}
    offset = 0
    for _ in range(count):
        member, offset = _read_member(directory, offset)
        if member.name in members:
            raise ArchiveError(f"two members are named {member.name!a:.80}")
        members[member.name] = member
    return members


def find_content(raw: memoryview, member: Member) -> tuple[int, int]:
    """Returns the offsets in the file at which the bytes of a member start and end."""
    if not member.is_plain:
        raise ArchiveError(f"{member.name:.80} is compressed or encrypted; torch.save does neither")
    if member.header + _LOCAL.size > len(raw) or bytes(raw[member.header : member.header + 4]) != b"PK\x03\x04":
        raise ArchiveError(f"{member.name:.80} has no local header at the offset that the directory gives")
    *_, name_length, extra_length = _LOCAL.unpack_from(raw, member.header)
    start = member.header + _LOCAL.size + name_length + extra_length
    if start + member.size > len(raw):
        raise ArchiveError(f"{member.name:.80} is truncated")
    return start, start + member.size


def _find_directory(raw: memoryview) -> tuple[int, int, int]:
    """Returns the number of entries of the central directory, its offset, and its size in bytes."""
    search_start = max(0, len(raw) - _END.size - _LONGEST_COMMENT)
    offset = bytes(raw[search_start:]).rfind(b"PK\x05\x06")
    if offset < 0 or search_start + offset + _END.size > len(raw):
        raise ArchiveError("the end-of-central-directory record is missing")
    end_record = search_start + offset
    _, disk, _, _, count, size, start, _ = _END.unpack_from(raw, end_record)
    if disk not in (0, 0xFFFF):
        raise ArchiveError("zip archives on several disks are not supported")
    if count == 0xFFFF or size == 0xFFFFFFFF or start == 0xFFFFFFFF:
        locator = end_record - _END64_LOCATOR.size
        if locator < 0 or bytes(raw[locator : locator + 4]) != b"PK\x06\x07":
            raise ArchiveError("the ZIP64 end-of-central-directory locator is missing")
        _, _, end_record, _ = _END64_LOCATOR.unpack_from(raw, locator)
        if end_record + _END64.size > locator or bytes(raw[end_record : end_record + 4]) != b"PK\x06\x06":
            raise ArchiveError("the ZIP64 end-of-central-directory record is not at the offset that its locator gives")
        *_, count, size, start = _END64.unpack_from(raw, end_record)
    if start + size > end_record or count * _ENTRY.size > size:
        raise ArchiveError(f"{size} bytes from byte {start} on cannot be a central directory of {count} entries")
    return count, start, size


def _read_member(directory: bytes, offset: int) -> tuple[Member, int]:
    """Reads the entry at an offset of the directory. Returns it and the offset of the next entry."""
    if offset + _ENTRY.size > len(directory) or directory[offset : offset + 4] != b"PK\x01\x02":
        raise ArchiveError(f"the central directory has no entry at its byte {offset}")
    entry = _ENTRY.unpack_from(directory, offset)
    flags, method, packed, size, header = entry[3], entry[4], entry[8], entry[9], entry[16]
    name_end = offset + _ENTRY.size + entry[10]
    extra_end = name_end + entry[11]
    if extra_end + entry[12] > len(directory):
        raise ArchiveError(f"the entry at byte {offset} of the central directory is truncated")
    try:
        name = directory[offset + _ENTRY.size : name_end].decode()
    except UnicodeDecodeError:
        raise ArchiveError("the name of a member is not UTF-8") from None
    wide_fields = [number for number in (size, packed, header) if number == 0xFFFFFFFF]
    numbers = iter(_read_wide_numbers(directory[name_end:extra_end], len(wide_fields)))
    size, packed, header = (next(numbers) if number == 0xFFFFFFFF else number for number in (size, packed, header))
    is_plain = method == _STORED and not flags & _ENCRYPTED and packed == size
    return Member(name, header, size, is_plain), extra_end + entry[12]


def _read_wide_numbers(extra: bytes, count: int) -> tuple[int, ...]:
    """Reads `count` 64-bit numbers from an entry's ZIP64 extra field (kind 1)."""
    offset = 0
    while count and offset + 4 <= len(extra):
        field_id, size = struct.unpack_from("<2H", extra, offset)
        if field_id == 1 and size >= 8 * count and offset + 4 + size <= len(extra):
            return struct.unpack_from(f"<{count}Q", extra, offset + 4)
        offset += 4 + size
    if count:
        raise ArchiveError("the ZIP64 size or offset of a member is missing")
    return ()
