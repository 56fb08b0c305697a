#include "weights/safetensors/layout.h"

#include <algorithm>

#include "posenc/weights/error.h"
#include "weights/common/dtype_facts.h"
#include "weights/common/json.h"
#include "weights/common/keyed_hash.h"
#include "weights/safetensors/reader.h"

namespace posenc::io {
namespace {

using Code = WeightsErrorCode;

constexpr uint64_t kLeastAlignment = 8;  // of the first byte after a header

std::string json_object(const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  for (const auto& [key, value] : metadata) {
    json += (json.size() > 1 ? "," : "") + json_string(key) + ":" + json_string(value);
  }
  return json + "}";
}

uint64_t size_in_bytes(const SafetensorsEntry& entry) {
  auto bytes = static_cast<uint64_t>(item_size(entry.dtype));
  for (const int64_t size : entry.sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

// A place among the bytes: larger numbers come first.
uint64_t order_of(const SafetensorsEntry& entry, uint64_t alignment) {
  if (alignment <= kLeastAlignment) return static_cast<uint64_t>(item_size(entry.dtype));
  const uint64_t bytes = size_in_bytes(entry) | alignment;
  return bytes & (~bytes + 1);  // the lowest bit
}

void check(const std::vector<SafetensorsEntry>& entries) {
  NameViews names = {"__metadata__"};  // reserved by the format
  for (const auto& entry : entries) {
    if (!names.insert(entry.name).second) {
      throw WeightsError(Code::DuplicateKey, entry.name == "__metadata__"
                                                 ? "has a name that safetensors reserves"
                                                 : "occurs twice among the tensors to be written")
          .in_tensor(entry.name);
    }
    if (*facts_of(entry.dtype).safetensors == '\0') {
      throw WeightsError(Code::Unsupported, std::string("has dtype ") + dtype_name(entry.dtype) +
                                                ", which safetensors lacks")
          .in_tensor(entry.name);
    }
    if (entry.dtype == ManifestDtype::Float4_e2m1fn_x2 && entry.sizes.empty()) {
      throw WeightsError(Code::Unsupported,
                         "must have an axis to be written as safetensors' F4. Got a scalar")
          .in_tensor(entry.name);
    }
  }
}

// In the format's elements: LibTorch counts pairs of F4.
std::vector<int64_t> shape_in_file(const SafetensorsEntry& entry) {
  auto sizes = entry.sizes;
  if (entry.dtype == ManifestDtype::Float4_e2m1fn_x2) sizes.back() *= 2;
  return sizes;
}

}  // namespace

SafetensorsLayout lay_out_safetensors(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata,
                                      uint64_t alignment) {
  check(entries);
  SafetensorsLayout layout;
  layout.order.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) layout.order[i] = i;
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](std::size_t a, std::size_t b) {
    return order_of(entries[a], alignment) > order_of(entries[b], alignment);
  });
  std::vector<uint64_t> begins(entries.size());
  uint64_t offset = 0;
  for (const std::size_t i : layout.order) {
    begins[i] = offset;
    offset += size_in_bytes(entries[i]);
  }

  std::string json = "{";
  if (!metadata.empty()) json += "\"__metadata__\":" + json_object(metadata) + ",";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    json += json_string(entry.name) + ":{\"dtype\":\"";
    json += facts_of(entry.dtype).safetensors;
    json += "\",\"shape\":[";
    const auto sizes = shape_in_file(entry);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      json += (k > 0 ? "," : "") + std::to_string(sizes[k]);
    }
    json += "],\"data_offsets\":[" + std::to_string(begins[i]) + "," +
            std::to_string(begins[i] + size_in_bytes(entry)) + "]},";
  }
  if (json.back() == ',') json.pop_back();
  json += "}";
  const uint64_t begin = json.size() + kLeastAlignment;  // after the length of the header
  json.append((alignment - begin % alignment) % alignment, ' ');
  if (json.size() > kLongestSafetensorsHeader) {
    throw WeightsError(Code::LimitExceeded, "would have a header of " +
                                                std::to_string(json.size()) +
                                                " bytes, and readers take at most " +
                                                std::to_string(kLongestSafetensorsHeader));
  }
  for (unsigned i = 0; i < 8; ++i) {
    layout.header += static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i) & 0xff);
  }
  layout.header += json;
  return layout;
}

}  // namespace posenc::io
