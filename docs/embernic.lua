-- EmberNIC packets in Wireshark and tshark:
--   tshark -X lua_script:docs/embernic.lua -r run.pcap -V
-- Written by `python -m gen.documents.dissector` from rtl/formats.py; change it there.

local PORT, VERSION = 18515, 1
local BEAT, HEADER, RECORD, TAG = 64, 22, 8, 2
local LOOKUPS, VECTORS = 1, 2
local OPCODES = {
  [0x01] = "LOOKUPS",
  [0x02] = "VECTORS",
  [0x03] = "PARTIALS",
  [0x04] = "STEPS",
  [0x05] = "LINK",
  [0x06] = "PROBE",
  [0x10] = "QUERIES",
  [0x11] = "GPU_VECTORS",
  [0x12] = "DENSE_VECTORS",
  [0x13] = "GRADIENTS",
  [0x14] = "RETURNED",
  [0x15] = "STATES",
  [0x16] = "WRITTEN",
  [0x17] = "STEP_OPEN",
  [0x18] = "FLUSHED",
  [0x19] = "READ_DATA",
  [0x20] = "LOOKUP_REQUESTS",
  [0x21] = "POOLED",
  [0x22] = "ERRORS",
  [0x23] = "CREDIT",
  [0x24] = "DENSE_REQUESTS",
  [0x25] = "RESULTS",
  [0x26] = "RESULT_PART",
  [0x27] = "SPILLED",
  [0x28] = "ROW_UPDATES",
  [0x29] = "STATE_REQUESTS",
  [0x2a] = "STATE_UPDATES",
  [0x2b] = "STEP_REPORTS",
  [0x2c] = "INDICES",
  [0x2d] = "FLUSH",
  [0x2e] = "COMPLETION",
  [0x2f] = "READ",
  [0x30] = "INDEX",
  [0x31] = "READ_ROWS",
}

local ember = Proto("embernic", "EmberNIC")
local header_fields = {
  {name = "version", first = 0, bytes = 1, field = ProtoField.uint8("embernic.version", "version", base.DEC)},
  {name = "opcode", first = 1, bytes = 1, field = ProtoField.uint8("embernic.opcode", "opcode", base.HEX, OPCODES)},
  {name = "source", first = 2, bytes = 1, field = ProtoField.uint8("embernic.source", "source", base.DEC)},
  {name = "destination", first = 3, bytes = 1, field = ProtoField.uint8("embernic.destination", "destination", base.DEC)},
  {name = "epoch", first = 4, bytes = 1, field = ProtoField.uint8("embernic.epoch", "epoch", base.DEC)},
  {name = "flags", first = 5, bytes = 1, field = ProtoField.uint8("embernic.flags", "flags", base.HEX)},
  {name = "step", first = 6, bytes = 2, field = ProtoField.uint16("embernic.step", "step", base.DEC)},
  {name = "sequence", first = 8, bytes = 3, field = ProtoField.uint24("embernic.sequence", "sequence", base.DEC)},
  {name = "acknowledge", first = 11, bytes = 3, field = ProtoField.uint24("embernic.acknowledge", "acknowledge", base.DEC)},
  {name = "credit", first = 14, bytes = 2, field = ProtoField.uint16("embernic.credit", "credit", base.DEC)},
  {name = "count", first = 16, bytes = 2, field = ProtoField.uint16("embernic.count", "count", base.DEC)},
  {name = "crc", first = 18, bytes = 4, field = ProtoField.uint32("embernic.crc", "crc", base.HEX)},
}
local record_fields = {
  {name = "row", offset = 0, first = 0, bytes = 5, mask = UInt64.new(0xffffffff, 0xf),
   field = ProtoField.uint64("embernic.record.row", "row")},
  {name = "table", offset = 36, first = 4, bytes = 2, mask = UInt64.new(0xfff, 0x0),
   field = ProtoField.uint64("embernic.record.table", "table")},
  {name = "landing", offset = 48, first = 6, bytes = 2, mask = UInt64.new(0xffff, 0x0),
   field = ProtoField.uint64("embernic.record.landing", "landing")},
}
local record = ProtoField.none("embernic.record", "lookup")
local vector = ProtoField.none("embernic.vector", "vector")
local tag = ProtoField.uint16("embernic.vector.landing", "landing")
local value = ProtoField.float("embernic.vector.value", "value")
local shared = ProtoField.bytes("embernic.shared", "beat that the vectors share")
local padding = ProtoField.bytes("embernic.padding", "padding")

ember.fields = {record, vector, tag, value, shared, padding}
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
ember.experts = {bad_length, bad_version, bad_opcode}

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
  local head = {}
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
