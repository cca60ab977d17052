"""Generator of the Wireshark dissector: ``python -m gen.documents.dissector``.

The text, made from :mod:`rtl.formats`, goes to standard output; ``docs/embernic.lua`` is a copy of
it. It decodes the EmberNIC header of every UDP packet from or to the NIC's default port, the
records of a lookups packet and the tags and vectors of a vectors packet. The CRC is shown but not
checked.

Vectors below 16 values share beats, and a packet does not contain their length. If the packet's
length is ambiguous (one beat of two vectors), the preference ``embernic.dimension`` decides;
without it the beat is shown undivided.
"""

from rtl.config import preset
from rtl.control.registers import register_map
from rtl.formats import (
    BEAT_BYTES,
    EMBER_OFFSET,
    TAG_BITS,
    VERSION,
    EmberHeader,
    LookupRecord,
    Opcode,
)

__all__ = ["dissector"]

_HEXADECIMAL = ("flags", "crc")
"""Header fields shown in hexadecimal."""

_BODY = """\
-- EmberNIC packets in Wireshark and tshark:
--   tshark -X lua_script:docs/embernic.lua -r run.pcap -V
-- Written by `python -m gen.documents.dissector` from rtl/formats.py; change it there.

local PORT, VERSION = {port}, {version}
local BEAT, HEADER, RECORD, TAG = {beat}, {header}, {record}, {tag}
local LOOKUPS, VECTORS = {lookups}, {vectors}
local OPCODES = {{
{opcodes}
}}

local ember = Proto("embernic", "EmberNIC")
local header_fields = {{
{header_fields}
}}
local record_fields = {{
{record_fields}
}}
local record = ProtoField.none("embernic.record", "lookup")
local vector = ProtoField.none("embernic.vector", "vector")
local tag = ProtoField.uint{tag_bits}("embernic.vector.landing", "landing")
local value = ProtoField.float("embernic.vector.value", "value")
local shared = ProtoField.bytes("embernic.shared", "beat that the vectors share")
local padding = ProtoField.bytes("embernic.padding", "padding")

ember.fields = {{record, vector, tag, value, shared, padding}}
ember.prefs.dimension = Pref.uint(
  "Dimension", 0, "Values of a vector; 0 to tell it from the length of each packet")
for _, entry in ipairs(header_fields) do ember.fields[#ember.fields + 1] = entry.field end
for _, entry in ipairs(record_fields) do ember.fields[#ember.fields + 1] = entry.field end

local bad_length = ProtoExpert.new(
  "embernic.bad_length", "Payload does not fit opcode and count",
  expert.group.MALFORMED, expert.severity.ERROR)
local bad_version = ProtoExpert.new(
  "embernic.bad_version", "Unknown version", expert.group.PROTOCOL, expert.severity.WARN)
local bad_opcode = ProtoExpert.new(
  "embernic.bad_opcode", "Opcode that no NIC sends to another",
  expert.group.PROTOCOL, expert.severity.WARN)
ember.experts = {{bad_length, bad_version, bad_opcode}}

-- Bytes of n items rounded up to whole beats.
local function beats(bytes)
  return math.ceil(bytes / BEAT) * BEAT
end

local function add_padding(tree, payload, first, stop)
  if stop > first then tree:add(padding, payload(first, stop - first)) end
end

local function lookups(payload, tree, count)
  if payload:len() ~= beats(RECORD * count) then return false end
  for k = 0, count - 1 do
    local range = payload(RECORD * k, RECORD)
    local bits = range:le_uint64()
    local branch = tree:add(record, range)
    for _, entry in ipairs(record_fields) do
      local bits_of_field = bits:rshift(entry.offset):band(entry.mask)
      branch:add(entry.field, range(entry.first, entry.bytes), bits_of_field)
      branch:append_text(", " .. entry.name .. " " .. tostring(bits_of_field))
    end
  end
  add_padding(tree, payload, RECORD * count, payload:len())
  return true
end

-- Bytes of each of count vectors in so many bytes of whole beats, nil if they do not fit, and
-- whether another size would fit too.
local function vector_size(count, bytes)
  if ember.prefs.dimension > 0 then
    local size = 4 * ember.prefs.dimension
    return beats(size * count) == bytes and size or nil, false
  end
  local size = bytes / count
  if size > 0 and size % BEAT == 0 then return size, false end
  local halves = beats(BEAT / 2 * count) == bytes
  local quarters = beats(BEAT / 4 * count) == bytes
  return halves and BEAT / 2 or quarters and BEAT / 4 or nil, halves and quarters
end

local function vectors(payload, tree, count)
  if count == 0 then return payload:len() == 0 end
  local tags = beats(TAG * count)
  local size, open = vector_size(count, payload:len() - tags)
  if not size then return false end
  for k = 0, count - 1 do
    local data = open and payload(TAG * k, TAG) or payload(tags + size * k, size)
    local branch = tree:add(vector, data)
    branch:add_le(tag, payload(TAG * k, TAG))
    branch:append_text(", landing " .. payload(TAG * k, TAG):le_uint())
    if not open then
      for byte = 0, size - 4, 4 do branch:add_le(value, data(byte, 4)) end
    end
  end
  add_padding(tree, payload, TAG * count, tags)
  if open then
    tree:add(shared, payload(tags, payload:len() - tags))
  else
    add_padding(tree, payload, tags + size * count, payload:len())
  end
  return true
end

function ember.dissector(buffer, packet, root)
  if buffer:len() < HEADER then return 0 end
  packet.cols.protocol = "EmberNIC"
  local tree = root:add(ember, buffer())
  local head = {{}}
  for _, entry in ipairs(header_fields) do
    local range = buffer(entry.first, entry.bytes)
    tree:add_le(entry.field, range)
    head[entry.name] = range:le_uint()
  end
  local name = OPCODES[head.opcode] or string.format("opcode 0x%02x", head.opcode)
  local text = string.format("%s, node %d to %d, step %d, count %d",
                             name, head.source, head.destination, head.step, head.count)
  packet.cols.info = text
  tree:append_text(", " .. text)
  if head.version ~= VERSION then
    tree:add_proto_expert_info(bad_version)
    return buffer:len()
  end
  -- A packet that is the header alone has no bytes to take a range of.
  local payload = buffer:len() > HEADER and buffer(HEADER):tvb() or ByteArray.new():tvb("empty")
  local fits
  if head.opcode == LOOKUPS then
    fits = lookups(payload, tree, head.count)
  elseif head.opcode == VECTORS then
    fits = vectors(payload, tree, head.count)
  else
    tree:add_proto_expert_info(bad_opcode)
    return buffer:len()
  end
  if not fits then tree:add_proto_expert_info(bad_length) end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, ember)
"""


def _header_field(name: str, bits: int) -> str:
    base = "base.HEX" if name in (*_HEXADECIMAL, "opcode") else "base.DEC"
    values = ", OPCODES" if name == "opcode" else ""
    first = EmberHeader[name].offset // 8
    return (f'  {{name = "{name}", first = {first}, bytes = {bits // 8}, '
            f'field = ProtoField.uint{bits}("embernic.{name}", "{name}", {base}{values})}},')


def _record_field(name: str, bits: int) -> str:
    offset = LookupRecord[name].offset
    first, stop = offset // 8, -(-(offset + bits) // 8)
    low, high = (1 << min(bits, 32)) - 1, (1 << max(bits - 32, 0)) - 1
    # A field may end inside a byte, so its value is extracted from the whole record.
    return (f'  {{name = "{name}", offset = {offset}, first = {first}, bytes = {stop - first}, '
            f'mask = UInt64.new({low:#x}, {high:#x}),\n'
            f'   field = ProtoField.uint64("embernic.record.{name}", "{name}")}},')


def dissector() -> str:
    """Return the dissector as Lua source."""
    port = next(register.reset for register in register_map(preset("tiny"), {})
                if register.name == "udp_port")
    return _BODY.format(
        port=port, version=VERSION, beat=BEAT_BYTES, header=BEAT_BYTES - EMBER_OFFSET,
        record=LookupRecord.size // 8, tag=TAG_BITS // 8, tag_bits=TAG_BITS,
        lookups=int(Opcode.LOOKUPS), vectors=int(Opcode.VECTORS),
        opcodes="\n".join(f'  [{int(code):#04x}] = "{code.name}",' for code in Opcode),
        header_fields="\n".join(_header_field(*item) for item in EmberHeader.members.items()),
        record_fields="\n".join(_record_field(*item) for item in LookupRecord.members.items()))


if __name__ == "__main__":
    print(dissector(), end="")
