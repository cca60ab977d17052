// Converts VCD text (IEEE 1364-2005, chapter 18) to GTKWave's FST format, piece by piece.
//
// Every engine writes VCD; this file converts it with the FST library in Verilator. Values are
// two-state, as in the engines. `$ember_enum ID LITERAL ... $end` before the end of the definitions
// lists the values of variable ID of type string, which FST stores as an enumeration.
#include "fstcpp/fstcpp_variable_info.cpp"
#include "fstcpp/fstcpp_writer.cpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ios>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

// Compresses `size` bytes into `target` of `capacity` bytes. Returns the compressed size, 0 if it
// exceeds `capacity`. Level -1 is LZ4, any other level is zlib's.
using Compress = uint64_t (*)(const void* data, uint64_t size, void* target, uint64_t capacity,
                              int level);
Compress compress = nullptr;

using Var = fst::Hierarchy::VarType;
using Scope = fst::Hierarchy::ScopeType;
const std::unordered_map<std::string, Var> VARS = {
    {"event", Var::VCD_EVENT}, {"integer", Var::VCD_INTEGER}, {"parameter", Var::VCD_PARAMETER},
    {"reg", Var::VCD_REG}, {"wire", Var::VCD_WIRE}, {"logic", Var::SV_LOGIC},
    {"string", Var::SV_ENUM}};
const std::unordered_map<std::string, Scope> SCOPES = {
    {"module", Scope::VCD_MODULE}, {"task", Scope::VCD_TASK}, {"function", Scope::VCD_FUNCTION},
    {"begin", Scope::VCD_BEGIN}, {"struct", Scope::VCD_STRUCT}};

template <typename T>
T among(const std::unordered_map<std::string, T>& table, const std::string& name, T other) {
    const auto found = table.find(name);
    return found == table.end() ? other : found->second;
}

struct Signal {
    fst::Handle handle = 0;
    uint32_t width = 1;
    std::vector<std::string> literals;
};

class Converter {
public:
    explicit Converter(const char* path) {
        writer.open(view(path));
        writer.setWriter(view("EmberNIC"));
    }

    void feed(const char* text, uint64_t bytes) {
        rest.append(text, bytes);
        const size_t end = rest.find_last_of('\n');
        if (end == std::string::npos) return;
        const char* at = rest.data();
        const char* const stop = at + end + 1;
        while (at < stop) {
            const char* const line_end = std::find(at, stop, '\n');
            line(at, line_end);
            at = line_end + 1;
        }
        rest.erase(0, end + 1);
    }

    void close() {
        rest += '\n';
        feed("", 0);
        // Readers need at least one time.
        if (writer.getHeader().m_start_time == fst::kInvalidTime) writer.emitTimeChange(0);
        writer.close();
    }

private:
    fst::Writer writer;
    std::string rest;
    std::vector<std::string> words;  // of the unfinished directive
    std::unordered_map<std::string, Signal> signals;
    std::string code, value;
    bool defining = true;

    static fst::string_view_pair view(const std::string& text) {
        return fst::make_string_view_pair(text.data(), text.size());
    }

    void line(const char* at, const char* end) {
        while (at < end) {
            while (at < end && std::isspace(static_cast<unsigned char>(*at))) at++;
            if (at == end) return;
            if (!defining && *at != '$' && words.empty()) return change(at, end);
            const char* const word = at;
            while (at < end && !std::isspace(static_cast<unsigned char>(*at))) at++;
            words.emplace_back(word, at);
            if (words.back() != "$end") {
                // $dump commands only enclose value changes.
                if (words.size() == 1 && words[0].compare(0, 5, "$dump") == 0) words.clear();
                continue;
            }
            words.pop_back();
            if (!words.empty()) directive();
            words.clear();
        }
    }

    void directive() {
        const std::string& kind = words[0];
        if (kind == "$scope" && words.size() > 2) {
            writer.setScope(among(SCOPES, words[1], Scope::VCD_MODULE), view(words[2]), view(""));
        } else if (kind == "$upscope") {
            writer.upscope();
        } else if (kind == "$var" && words.size() > 4) {
            variable();
        } else if (kind == "$ember_enum" && words.size() > 2) {
            signals[words[1]].literals.assign(words.begin() + 2, words.end());
        } else if (kind == "$timescale") {
            timescale();
        } else if (kind == "$enddefinitions") {
            defining = false;
        }
    }

    void timescale() {
        std::string text;
        for (size_t i = 1; i < words.size(); i++) text += words[i];
        const size_t digits = text.find_first_not_of("0123456789");
        const std::string units[] = {"s", "ms", "us", "ns", "ps", "fs"};
        for (int i = 0; i < 6; i++) {
            if (digits != std::string::npos && text.substr(digits) == units[i])
                writer.setTimecale(static_cast<int8_t>(static_cast<int>(digits) - 1 - 3 * i));
        }
    }

    void variable() {
        Signal& signal = signals[words[3]];
        std::string name = words[4];
        for (size_t i = 5; i < words.size(); i++) name += " " + words[i];
        if (!signal.literals.empty() && !signal.handle) {
            while (signal.literals.size() > size_t(1) << signal.width) signal.width++;
        } else if (!signal.handle) {
            signal.width = static_cast<uint32_t>(std::stoul(words[2]));
        }
        if (!signal.width) return;  // Amaranth has signals without bits, FST does not
        if (!signal.literals.empty()) enumeration(signal);
        const fst::Handle handle = writer.createVar(
            among(VARS, words[1], Var::VCD_WIRE), fst::Hierarchy::VarDirection::IMPLICIT,
            signal.width, view(name), signal.handle);
        if (!signal.handle) signal.handle = handle;
    }

    void enumeration(const Signal& signal) {
        std::vector<std::string> codes;
        for (size_t i = 0; i < signal.literals.size(); i++) codes.push_back(binary(signal, i));
        std::vector<std::pair<fst::string_view_pair, fst::string_view_pair>> table;
        for (size_t i = 0; i < codes.size(); i++)
            table.emplace_back(view(signal.literals[i]), view(codes[i]));
        writer.emitEnumTableRef(writer.createEnumTable(view("values"), signal.width, table));
    }

    static std::string binary(const Signal& signal, size_t number) {
        std::string text(signal.width, '0');
        for (uint32_t i = 0; i < signal.width; i++)
            if (number >> i & 1) text[signal.width - 1 - i] = '1';
        return text;
    }

    void change(const char* at, const char* end) {
        if (*at == '#') {
            uint64_t time = 0;
            std::from_chars(at + 1, end, time);
            writer.emitTimeChange(time);
            return;
        }
        const bool vector = std::strchr("bBsSrR", *at) != nullptr;
        const char* const from = vector ? at + 1 : at;
        const char* const to = vector ? std::find(from, end, ' ') : from + 1;
        while (end > to && std::isspace(static_cast<unsigned char>(end[-1]))) end--;
        const char* id = to;
        while (id < end && *id == ' ') id++;
        code.assign(id, end);
        const auto found = signals.find(code);
        if (found != signals.end() && !found->second.width) return;
        if (found == signals.end() || !found->second.handle)
            throw std::runtime_error("a value of an undeclared variable: " + std::string(at, end));
        const Signal& signal = found->second;
        if (*at == 's' || *at == 'S') {
            const auto& all = signal.literals;
            const auto place = std::find(all.begin(), all.end(), std::string(from, to));
            if (place == all.end())
                throw std::runtime_error("a word that is not listed: " + std::string(at, end));
            value = binary(signal, static_cast<size_t>(place - all.begin()));
        } else {
            const auto size = static_cast<size_t>(to - from);
            if (size > signal.width || std::any_of(from, to, [](char bit) {
                    return bit != '0' && bit != '1'; }))
                throw std::runtime_error("not a two-state value: " + std::string(at, end));
            value.assign(signal.width - size, '0').append(from, to);
        }
        writer.emitValueChange(signal.handle, value.c_str());
    }
};

std::string complaint;

template <typename Action>
const char* guarded(Action action) {
    try {
        action();
    } catch (const std::ios_base::failure&) {  // from fst/fstcpp/fstcpp_assertion.h
        return "";
    } catch (const std::exception& error) {
        complaint = error.what();
        return complaint.c_str();
    }
    return nullptr;
}

}  // namespace

int LZ4_compressBound(int size) { return size + size / 255 + 16; }

int LZ4_compress_default(const char* data, char* target, int size, int capacity) {
    return static_cast<int>(compress(data, static_cast<uint64_t>(size), target,
                                     static_cast<uint64_t>(capacity), -1));
}

uLong compressBound(uLong size) { return size + (size >> 12) + (size >> 14) + (size >> 25) + 13; }

int compress2(Bytef* target, uLongf* target_size, const Bytef* data, uLong size, int level) {
    *target_size = compress(data, size, target, *target_size, level);
    return *target_size ? Z_OK : -5;  // Z_BUF_ERROR
}

// The interface for ctypes. Functions return null or an error message; an empty message means that
// the file could not be written.
#pragma GCC visibility push(default)
extern "C" {

Converter* fst_open(const char* path, Compress function) {
    compress = function;
    return new Converter(path);
}

const char* fst_feed(Converter* converter, const char* text, uint64_t bytes) {
    return guarded([=] { converter->feed(text, bytes); });
}

const char* fst_close(Converter* converter) {
    const char* said = guarded([=] { converter->close(); });
    if (!said) delete converter;  // a converter that failed to close would try again
    return said;
}

}  // extern "C"
#pragma GCC visibility pop
