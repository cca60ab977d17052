// Answers to samples, put in place: what sim/answers.py does in Python with packets of one sample
// each. What is not as it must be is left to Python, which says what is wrong.
#include <algorithm>
#include <cstdint>
#include <cstring>

// First byte and bytes of a field.
struct Field {
    uint32_t byte, bytes;
};

struct Wire {
    uint32_t words;  // of a beat
    Field opcode, credit, acknowledge, count;  // in the header beat
    Field sample, first, last;  // in the tag beat behind it
    uint32_t errors, answers;  // opcodes: of refusals, and of what is put in place here
    uint32_t other_answers;  // an opcode that Python puts in place; `answers` where there is none
};

// A step's share at this node.
struct Share {
    uint32_t number, samples;  // of its first sample, and how many the step has
    uint32_t first, end;  // places of the share's samples
    uint64_t parts, values;  // of an answer, and of each part
    float* answers;  // [samples][parts][values]
    int64_t *filled, *left;  // parts of each sample that are there; samples of the share to come
};

struct Credits {
    uint32_t credit, acknowledge;
};

namespace {

// Of a packet; a number from 0 on is that of the share that it completes.
constexpr int32_t NOTHING = -1, TELL = -2;

uint32_t read(const uint8_t* beat, Field field) {
    uint32_t value = 0;
    std::memcpy(&value, beat + field.byte, field.bytes);
    return value;
}

// Returns which share the answer belongs to and puts it there; -1 when something is wrong.
int64_t place(const Wire& wire, const uint32_t* packet, uint64_t beats, uint32_t count,
              const Share* shares, uint64_t open) {
    if (beats < 2) return -1;
    const auto* tag = reinterpret_cast<const uint8_t*>(packet + wire.words);
    const uint32_t sample = read(tag, wire.sample), first = read(tag, wire.first);
    uint64_t of = 0;
    while (of < open && sample - shares[of].number >= shares[of].samples) of++;
    if (of == open) return -1;
    const Share& share = shares[of];
    const uint32_t at = sample - share.number;
    const uint64_t values = count * share.values, after = uint64_t{first} + count;
    if (at < share.first || at >= share.end || share.filled[at] != first || after > share.parts
        || (values + wire.words - 1) / wire.words != beats - 2
        || (read(tag, wire.last) & 1) != (after == share.parts))
        return -1;
    std::memcpy(share.answers + (at * share.parts + first) * share.values,
                packet + 2 * wire.words, values * sizeof(float));
    share.filled[at] = after;
    if (after == share.parts) --*share.left;
    return of;
}

}  // namespace

// Packets `from` on of `count`, beats starts[i] to ends[i]: what there is to be told of each is in
// `tell`. Returns the first that Python has to take, `count` where there is none.
extern "C" __attribute__((visibility("default"))) uint64_t ember_answers(
    const Wire* wire, const uint32_t* beats, const uint64_t* starts, const uint64_t* ends,
    uint64_t from, uint64_t count, const Share* shares, uint64_t open, Credits* known,
    int32_t* tell) {
    for (; from < count; from++) {
        const uint32_t* packet = beats + starts[from] * wire->words;
        const auto* head = reinterpret_cast<const uint8_t*>(packet);
        const uint32_t opcode = read(head, wire->opcode);
        if (opcode == wire->errors) return from;
        const bool answers = opcode == wire->answers;
        if (!answers && opcode == wire->other_answers) return from;
        int64_t of = -1;
        if (answers) {
            of = place(*wire, packet, ends[from] - starts[from], read(head, wire->count), shares,
                       open);
            if (of < 0) return from;
        }
        const Credits now{read(head, wire->credit), read(head, wire->acknowledge)};
        if (answers && !*shares[of].left)
            tell[from] = static_cast<int32_t>(of);
        else if (answers && now.credit == known->credit && now.acknowledge == known->acknowledge)
            tell[from] = NOTHING;
        else
            tell[from] = TELL;
        if (tell[from] != NOTHING) *known = now;
    }
    return count;
}
