#include "weights/safetensors/reader.h"

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "posenc/weights/error.h"
#include "weights/common/dtype_facts.h"
#include "weights/common/json.h"
#include "weights/common/keyed_hash.h"
#include "weights/common/tensor_list.h"

namespace posenc::io {
namespace {

using Code = WeightsErrorCode;

// The dtype that safetensors calls `name`; nullopt if it is unknown or LibTorch lacks it. Where the
// format counts elements of F4, ManifestDtype::Float4_e2m1fn_x2 counts pairs.
std::optional<ManifestDtype> dtype_called(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return find_dtype([&](const DtypeFacts& facts) { return facts.safetensors == name; });
}

// The bits of an element if it is smaller than a byte, otherwise 0.
int bits_of(std::string_view dtype) {
  if (dtype == "F4") return 4;
  return dtype == "F6_E2M3" || dtype == "F6_E3M2" ? 6 : 0;
}

// The error for a dtype without a counterpart.
WeightsError unknown_dtype(std::string_view name) {
  const int bits = bits_of(name);
  const std::string reason =
      bits == 4   ? "has dtype 'F4' and a shape whose last axis is odd, and LibTorch holds pairs"
      : bits == 6 ? "has dtype " + in_quotes(name) + ", which LibTorch lacks"
                  : "has the unknown dtype " + in_quotes(name);
  return {Code::Unsupported, reason, bits == 0 ? "" : "save it as F8_E4M3, F16 or F32"};
}

class HeaderHandler : public JsonHandler {
 public:
  explicit HeaderHandler(Manifest& manifest) : manifest_(manifest) {}

  void start_object() override {
    switch (state_) {
      case State::Start: state_ = State::Header; break;
      case State::Value:
        if (tensor_.name == "__metadata__") {
          if (std::exchange(has_metadata_, true)) throw_duplicate("name '__metadata__'");
          state_ = State::Metadata;
        } else {
          state_ = State::Tensor;
          seen_ = 0;
        }
        break;
      default: other("an object");
    }
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::Tensor: return begin_field(name);
      case State::Metadata:
        if (manifest_.metadata.count(name) != 0) throw_duplicate("metadata key " + in_quotes(name));
        metadata_key_ = std::move(name);
        return true;
      default:
        tensor_ = {};
        tensor_.name = std::move(name);
        state_ = State::Value;
        return true;
    }
  }

  void end_object() override {
    if (state_ == State::Tensor) end_tensor();
    state_ = state_ == State::Header ? State::End : State::Header;
  }

  void start_array() override {
    if (state_ != State::Tensor || field_ == kDtype) return other("an array");
    numbers_.clear();
    state_ = State::Numbers;
  }

  void end_array() override {
    state_ = State::Tensor;
    if (field_ == kShape) {
      // Exactly as large as needed: many short shapes make up most of a header's memory.
      tensor_.sizes.assign(numbers_.begin(), numbers_.end());
      return;
    }
    if (numbers_.size() != 2) refuse_field("two non-negative integers", numbers_.size());
    if (numbers_[0] > numbers_[1]) {
      throw tensor_error("must have data_offsets that do not decrease. Got [" +
                         std::to_string(numbers_[0]) + ", " + std::to_string(numbers_[1]) + "]");
    }
    storage_ = {0, numbers_[0], numbers_[1] - numbers_[0]};
  }

  void string(std::string& text) override {
    if (state_ == State::Metadata) {
      manifest_.metadata.emplace(std::move(metadata_key_), std::move(text));
    } else if (state_ == State::Tensor && field_ == kDtype) {
      dtype_ = std::move(text);
    } else {
      other("a string");
    }
  }

  void number(uint64_t value) override {
    if (state_ != State::Numbers) return other(std::to_string(value));
    if (field_ == kShape && value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return other(std::to_string(value));
    }
    if (numbers_.size() == kMostDimensions) {
      throw WeightsError(Code::LimitExceeded,
                         std::string("must have at most 64 integers as ") + field_name(field_))
          .in_tensor(tensor_.name);
    }
    numbers_.push_back(value);
  }

  // Handles any value where the format does not allow it.
  void other(const std::string& got) override {
    switch (state_) {
      case State::Start:
        throw WeightsError(Code::Corrupt, "must have an object as its header. Got " + got);
      case State::Metadata:
        throw WeightsError(Code::Corrupt, "must have texts as metadata. Got " + got + " for key " +
                                              in_quotes(metadata_key_));
      case State::Tensor: refuse_field(field_ == kDtype ? "a string" : "an array", got);
      case State::Numbers: refuse_field("non-negative integers", got);
      case State::Value:
        if (tensor_.name == "__metadata__" && got == "null") {  // how Rust writes None
          if (std::exchange(has_metadata_, true)) throw_duplicate("name '__metadata__'");
          state_ = State::Header;
          return;
        }
        [[fallthrough]];
      default: throw tensor_error("must be described by an object. Got " + got);
    }
  }

 private:
  enum class State { Start, Header, Value, Metadata, Tensor, Numbers, End };
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };  // bits of seen_

  static const char* field_name(Field field) {
    return field == kDtype ? "dtype" : field == kShape ? "shape" : "data_offsets";
  }

  WeightsError tensor_error(const std::string& reason) const {
    return WeightsError(Code::Corrupt, reason).in_tensor(tensor_.name);
  }

  [[noreturn]] void refuse_field(const std::string& rule, const std::string& got) const {
    throw tensor_error("must have " + rule + " as " + field_name(field_) + ". Got " + got);
  }
  [[noreturn]] void refuse_field(const std::string& rule, std::size_t count) const {
    refuse_field(rule, std::to_string(count));
  }

  [[noreturn]] static void throw_duplicate(const std::string& what) {
    throw WeightsError(Code::DuplicateKey, "has " + what + " twice in its header");
  }

  // Returns whether the field is one of the format's; others are skipped.
  bool begin_field(const std::string& name) {
    if (name == "dtype") {
      field_ = kDtype;
    } else if (name == "shape") {
      field_ = kShape;
    } else if (name == "data_offsets") {
      field_ = kOffsets;
    } else {
      return false;
    }
    if ((seen_ & field_) != 0) {
      throw WeightsError(Code::DuplicateKey,
                         std::string("has field ") + field_name(field_) + " twice")
          .in_tensor(tensor_.name);
    }
    seen_ |= field_;
    return true;
  }

  void end_tensor() {
    for (const Field field : {kDtype, kShape, kOffsets}) {
      if ((seen_ & field) == 0) {
        throw tensor_error(std::string("must have a field ") + field_name(field));
      }
    }
    const int bits = bits_of(dtype_);
    if (bits != 0) check_bits(bits);
    const auto dtype = dtype_called(dtype_);
    const bool is_pairs = dtype == ManifestDtype::Float4_e2m1fn_x2;
    if (!dtype || (is_pairs && tensor_.sizes.back() % 2 != 0)) {
      manifest_.opaque.push_back(
          {tensor_.name, unreadable(unknown_dtype(dtype_)), EntryKind::Unreadable});
    } else {
      tensor_.dtype = *dtype;
      if (is_pairs) tensor_.sizes.back() /= 2;
    }
    tensor_.storage = manifest_.storages.size();
    manifest_.storages.push_back(storage_);
    manifest_.tensors.push_back(std::move(tensor_));
  }

  // Elements of less than a byte: together they have to be whole bytes, which are as many as the
  // offsets say.
  void check_bits(int bits) const {
    uint64_t total = static_cast<uint64_t>(bits);
    bool is_empty = false;
    for (const int64_t size : tensor_.sizes) {
      is_empty = is_empty || size == 0;
      const uint64_t factor = size == 0 ? 1 : static_cast<uint64_t>(size);
      if (__builtin_mul_overflow(total, factor, &total)) {
        throw tensor_error("has a shape whose product overflows");
      }
    }
    if (is_empty) total = 0;
    if (total % 8 != 0) {
      throw tensor_error("must end at the end of a byte. Got " + std::to_string(total) +
                         " bits for its shape and dtype");
    }
    if (total / 8 != storage_.bytes) {
      throw tensor_error("needs " + std::to_string(total / 8) +
                         " bytes for its shape and dtype. Got " + std::to_string(storage_.bytes) +
                         " by data_offsets");
    }
  }

  Manifest& manifest_;
  State state_ = State::Start;
  Field field_ = kDtype;
  unsigned seen_ = 0;  // the fields seen of this tensor
  bool has_metadata_ = false;
  ManifestTensor tensor_;
  std::string dtype_;
  ManifestStorage storage_;
  std::vector<uint64_t> numbers_;
  std::string metadata_key_;
};

// An upper bound: how often the header has the word. Growing the lists would double their cost.
std::size_t count_tensors(std::string_view json) {
  constexpr std::string_view kWord = "\"data_offsets\"";
  std::size_t count = 0;
  for (auto at = json.find(kWord); at != std::string_view::npos;
       at = json.find(kWord, at + kWord.size())) {
    ++count;
  }
  return count;
}

void check_names(const std::vector<ManifestTensor>& tensors) {
  NameViews names;
  names.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw WeightsError(Code::DuplicateKey, "occurs twice in the header").in_tensor(tensor.name);
    }
  }
}

}  // namespace

Manifest parse_safetensors_json(std::string_view json) {
  Manifest manifest;
  const std::size_t count = count_tensors(json);
  manifest.tensors.reserve(count);
  manifest.storages.reserve(count);
  HeaderHandler handler(manifest);
  io::parse_json(json, "its header", handler);
  check_names(manifest.tensors);
  return manifest;
}

}  // namespace posenc::io
