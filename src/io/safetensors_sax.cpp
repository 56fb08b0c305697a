#include "io/safetensors_sax.h"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "io/read/quote.h"

namespace posenc::io {
namespace {

using nlohmann::json;

// Takes the parser's events instead of its tree: the tree would cost many times the header, keep
// the last of two equal keys in silence, and recurse as deep as the file likes.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  explicit HeaderHandler(SafetensorsHeader& header) : header_(header) {}

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::Start: state_ = State::Header; return true;
      case State::HeaderValue:
        if (entry_.name == "__metadata__") {
          state_ = State::Metadata;
        } else {
          state_ = State::Tensor;
          field_ = Field::None;
          seen_ = 0;
        }
        return true;
      default: return skip_open("an object");
    }
  }

  bool key(string_t& name) override {
    switch (state_) {
      case State::Header:
        if (!names_.insert(name).second) {
          throw WeightsError(WeightsErrorCode::Corrupt,
                             "name " + in_quotes(name) + " stands twice in the header");
        }
        entry_ = {};
        entry_.name = std::move(name);
        state_ = State::HeaderValue;
        break;
      case State::Metadata:
        if (header_.metadata.count(name) != 0) {
          throw WeightsError(WeightsErrorCode::Corrupt,
                             "metadata key " + in_quotes(name) + " stands twice in the header");
        }
        metadata_key_ = std::move(name);
        break;
      case State::Tensor: begin_field(name); break;
      default: break;  // a key of something skipped
    }
    return true;
  }

  bool end_object() override {
    switch (state_) {
      case State::Tensor:
        end_tensor();
        state_ = State::Header;
        break;
      case State::Metadata: state_ = State::Header; break;
      case State::Skip: skip_close(); break;
      default: state_ = State::End; break;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::Tensor && (field_ == Field::Shape || field_ == Field::Offsets)) {
      state_ = State::Numbers;
      return true;
    }
    return skip_open("an array");
  }

  bool end_array() override {
    if (state_ == State::Numbers) {
      state_ = State::Tensor;
    } else {
      skip_close();
    }
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::Metadata) {
      header_.metadata.emplace(std::move(metadata_key_), std::move(value));
      return true;
    }
    if (state_ == State::Tensor && field_ == Field::Dtype) {
      try {
        entry_.dtype = safetensors_dtype(value);
      } catch (const WeightsError& error) {
        throw WeightsError(WeightsErrorCode::Corrupt,
                           "tensor " + in_quotes(entry_.name) + ": " + error.what());
      }
      return true;
    }
    return other("a string");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::Numbers) return other("a number");
    if (field_ == Field::Offsets) {
      offsets_.push_back(value);
      if (offsets_.size() > 2) throw field_error("two non-negative integers", "more");
      return true;
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw field_error("non-negative 64-bit integers", std::to_string(value));
    }
    if (entry_.shape.size() == kMostDimensions) throw field_error("at most 64 integers", "more");
    entry_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t value) override { return other(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return other(in_quotes(text));
  }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool null() override { return other("null"); }
  bool binary(binary_t&) override { return other("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "its header must be JSON in UTF-8. Got an error at byte " +
                           std::to_string(position) + " of it");
  }

 private:
  enum class State { Start, Header, HeaderValue, Metadata, Tensor, Numbers, Skip, End };
  enum class Field { None, Dtype, Shape, Offsets };
  static constexpr int kDeepest = 32;
  static constexpr std::size_t kMostDimensions = 64;  // LibTorch's iterators have no more

  static const char* field_name(Field field) {
    return field == Field::Dtype ? "dtype" : field == Field::Shape ? "shape" : "data_offsets";
  }

  WeightsError field_error(const std::string& rule, const std::string& got) const {
    return WeightsError(WeightsErrorCode::Corrupt, "tensor " + in_quotes(entry_.name) + ": " +
                                                       field_name(field_) + " must be " + rule +
                                                       ". Got " + got);
  }

  void begin_field(const std::string& name) {
    field_ = name == "dtype"          ? Field::Dtype
             : name == "shape"        ? Field::Shape
             : name == "data_offsets" ? Field::Offsets
                                      : Field::None;
    if (field_ == Field::None) return;  // unknown fields are skipped
    const unsigned bit = 1u << static_cast<unsigned>(field_);
    if ((seen_ & bit) != 0) {
      throw WeightsError(
          WeightsErrorCode::Corrupt,
          "tensor " + in_quotes(entry_.name) + ": field " + field_name(field_) + " stands twice");
    }
    seen_ |= bit;
    if (field_ == Field::Offsets) offsets_.clear();
  }

  void end_tensor() {
    for (const Field field : {Field::Dtype, Field::Shape, Field::Offsets}) {
      if ((seen_ & 1u << static_cast<unsigned>(field)) == 0) {
        throw WeightsError(
            WeightsErrorCode::Corrupt,
            "tensor " + in_quotes(entry_.name) + ": field " + field_name(field) + " is missing");
      }
    }
    if (offsets_.size() != 2) {
      field_ = Field::Offsets;
      throw field_error("two non-negative integers", std::to_string(offsets_.size()));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
  }

  // Anything at a place where the format does not have it: an error in the fields that count,
  // nothing in unknown ones.
  bool other(const std::string& got) const {
    switch (state_) {
      case State::Skip: return true;
      case State::Start:
        throw WeightsError(WeightsErrorCode::Corrupt, "its header must be an object. Got " + got);
      case State::Metadata:
        throw WeightsError(WeightsErrorCode::Corrupt, "metadata must be strings. Got " + got +
                                                          " for key " + in_quotes(metadata_key_));
      case State::Tensor:
        if (field_ == Field::None) return true;
        throw field_error(field_ == Field::Dtype ? "a string" : "an array", got);
      case State::Numbers: throw field_error("non-negative integers", got);
      default:
        throw WeightsError(
            WeightsErrorCode::Corrupt,
            "the value of name " + in_quotes(entry_.name) + " must be an object. Got " + got);
    }
  }

  bool skip_open(const char* what) {
    if (state_ != State::Skip) {
      other(what);  // throws unless this is the value of an unknown field of a tensor
      state_ = State::Skip;
    }
    if (++depth_ > kDeepest)
      throw WeightsError(WeightsErrorCode::Corrupt, "its header is nested too deep");
    return true;
  }

  void skip_close() {
    if (--depth_ == 0) state_ = State::Tensor;
  }

  SafetensorsHeader& header_;
  State state_ = State::Start;
  Field field_ = Field::None;
  unsigned seen_ = 0;  // a bit for each field of the tensor
  int depth_ = 0;      // within the value of an unknown field
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
};

}  // namespace

void parse_safetensors_json(std::string_view text, SafetensorsHeader& header) {
  // The parser would pass over a byte order mark, and take a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  if (text.starts_with("\xef\xbb\xbf") || nul != std::string_view::npos) {
    const std::size_t at = nul == std::string_view::npos ? 1 : nul + 1;
    throw WeightsError(
        WeightsErrorCode::Corrupt,
        "its header must be JSON in UTF-8. Got an error at byte " + std::to_string(at) + " of it");
  }
  HeaderHandler handler(header);
  json::sax_parse(text.begin(), text.end(), &handler);
}

std::string json_string(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "names and metadata must be UTF-8. Got " + in_quotes(text));
  }
}

}  // namespace posenc::io
