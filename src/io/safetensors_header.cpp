#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "io/read/quote.h"
#include "io/safetensors_sax.h"

namespace posenc::io {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kShortestHeader = 2;           // {}
constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the reference implementation

// In the order in which the data part holds them: large items first, so that all are aligned.
constexpr std::array<SafetensorsDtype, 19> kDtypes = {{
    {"F64", 8},     {"I64", 8},     {"U64", 8},         {"C64", 8},         {"F32", 4},
    {"I32", 4},     {"U32", 4},     {"F16", 2},         {"BF16", 2},        {"I16", 2},
    {"U16", 2},     {"I8", 1},      {"U8", 1},          {"BOOL", 1},        {"F8_E4M3", 1},
    {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1},
}};

uint64_t length_at_front(const InputFile& file) {
  std::array<unsigned char, kLengthBytes> bytes{};
  file.read(0, bytes.data(), bytes.size());
  uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = length << 8 | bytes[i];
  return length;
}

// Bytes of a tensor. Zeros count as ones for the overflow check: LibTorch computes strides so.
uint64_t size_in_bytes(const SafetensorsEntry& entry) {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  uint64_t product = entry.dtype.bytes;
  bool empty = false;
  for (const int64_t dim : entry.shape) {
    empty = empty || dim == 0;
    const uint64_t factor = std::max<uint64_t>(1, static_cast<uint64_t>(dim));
    if (product > kLargest / factor) {
      throw WeightsError(WeightsErrorCode::Corrupt, "tensor " + in_quotes(entry.name) +
                                                        ": the product of its shape overflows");
    }
    product *= factor;
  }
  return empty ? 0 : product;
}

void check_size(const SafetensorsEntry& entry) {
  const uint64_t wanted = size_in_bytes(entry);
  if (entry.begin > entry.end) {
    throw WeightsError(WeightsErrorCode::Corrupt, "tensor " + in_quotes(entry.name) +
                                                      ": data_offsets must not decrease. Got [" +
                                                      std::to_string(entry.begin) + ", " +
                                                      std::to_string(entry.end) + "]");
  }
  if (entry.end - entry.begin != wanted) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "tensor " + in_quotes(entry.name) + ": shape and dtype need " +
                           std::to_string(wanted) + " bytes. Got " +
                           std::to_string(entry.end - entry.begin) + " by data_offsets");
  }
}

// The ranges have to cover the data part from its beginning to its end: no overlap in which two
// tensors would share bytes, and no gap in which something could hide.
void check_ranges(const std::vector<SafetensorsEntry>& entries, uint64_t data_size) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const auto& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const auto* entry : order) {
    if (entry->end > data_size) {
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "the data of tensor " + in_quotes(entry->name) + " ends at byte " +
                             std::to_string(entry->end) + ", but the file has only " +
                             std::to_string(data_size) + " bytes of data (is it truncated?)");
    }
    if (entry->begin != covered) {
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "the data of tensor " + in_quotes(entry->name) + " must begin at byte " +
                             std::to_string(covered) + ". Got " + std::to_string(entry->begin) +
                             (entry->begin < covered ? " (an overlap)" : " (a hole)"));
    }
    covered = entry->end;
  }
  if (covered != data_size) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "the tensors' data must end at the end of the file. Got " +
                           std::to_string(data_size - covered) + " trailing bytes");
  }
}

}  // namespace

SafetensorsDtype safetensors_dtype(std::string_view name) {
  for (const auto& dtype : kDtypes) {
    if (dtype.name == name) return dtype;
  }
  if (name.starts_with("F4") || name.starts_with("F6_")) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "dtype " + in_quotes(name) +
                           " has less than a byte an element, which LibTorch cannot hold; save the "
                           "tensor as F8_E4M3, F16 or F32");
  }
  throw WeightsError(WeightsErrorCode::Corrupt, "dtype " + in_quotes(name) + " is unknown");
}

bool looks_like_safetensors(const InputFile& file) {
  if (file.size() < kLengthBytes + kShortestHeader) return false;
  const uint64_t length = length_at_front(file);
  if (length < kShortestHeader || length > kLongestHeader) return false;
  // Spaces may stand in front; a brace far behind many of them is the parser's affair.
  const std::size_t shown = std::min<uint64_t>({length, file.size() - kLengthBytes, 64});
  const std::string text = file.read(kLengthBytes, shown);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  if (file.size() < kLengthBytes + kShortestHeader) {
    throw WeightsError(WeightsErrorCode::Corrupt, "a safetensors file has at least 10 bytes. Got " +
                                                      std::to_string(file.size()));
  }
  const uint64_t length = length_at_front(file);
  if (length < kShortestHeader || length > kLongestHeader) {
    throw WeightsError(
        WeightsErrorCode::Corrupt,
        "is not a safetensors file: its header must have 2 to 100000000 bytes. Got " +
            std::to_string(length));
  }
  if (length > file.size() - kLengthBytes) {
    throw WeightsError(WeightsErrorCode::Corrupt, "its header of " + std::to_string(length) +
                                                      " bytes must lie inside the file" + " of " +
                                                      std::to_string(file.size()) +
                                                      " bytes (is it truncated?)");
  }
  auto header = parse_safetensors_header(file.read(kLengthBytes, length),
                                         file.size() - kLengthBytes - length);
  header.data_offset = kLengthBytes + length;
  return header;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size) {
  SafetensorsHeader header;
  parse_safetensors_json(json, header);
  for (const auto& entry : header.entries) check_size(entry);
  check_ranges(header.entries, data_size);
  return header;
}

std::string format_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      json += json_string(key) + ":" + json_string(value) + ",";
    }
    json.back() = '}';
    json += ",";
  }
  for (const auto& entry : entries) {
    json += json_string(entry.name) + ":{\"dtype\":\"" + std::string(entry.dtype.name) +
            "\",\"shape\":[";
    for (std::size_t i = 0; i < entry.shape.size(); ++i) {
      if (i > 0) json += ",";
      json += std::to_string(entry.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
            "]},";
  }
  if (json.back() == ',') json.pop_back();
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > kLongestHeader) {
    throw WeightsError(
        WeightsErrorCode::Corrupt,
        "a safetensors header has at most 100000000 bytes. Got " + std::to_string(json.size()));
  }
  std::string bytes;
  for (unsigned i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i) & 0xff);
  }
  return bytes + json;
}

}  // namespace posenc::io
