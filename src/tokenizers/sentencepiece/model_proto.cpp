#include "tokenizers/sentencepiece/model_proto.h"

#include <bit>
#include <cstring>

#include "base/text.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {
namespace {

[[noreturn]] void refuse_proto(const std::string& got) {
  throw TokenizerError("must be a SentencePiece model. Got " + got);
}

// A field of a protocol buffer's message.
struct Field {
  uint64_t number = 0;
  enum class Wire { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 } wire = Wire::Varint;
  uint64_t value = 0;      // of a varint or a fixed number
  std::string_view bytes;  // of a string or a message
};

// Reads the fields of a message in order.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  bool next(Field& field) {
    if (left_.empty()) return false;
    const uint64_t tag = varint();
    field.number = tag >> 3;
    field.wire = static_cast<Field::Wire>(tag & 7);
    if (field.number == 0) refuse_proto("a field without a number");
    switch (field.wire) {
      case Field::Wire::Varint: field.value = varint(); return true;
      case Field::Wire::Fixed64: field.value = fixed<uint64_t>(); return true;
      case Field::Wire::Fixed32: field.value = fixed<uint32_t>(); return true;
      case Field::Wire::Bytes: field.bytes = take(varint()); return true;
    }
    refuse_proto("a field of an unknown kind");
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse_proto("a number of more than ten bytes");
  }
  template <typename T>
  T fixed() {
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(uint64_t count) {
    if (count > left_.size()) refuse_proto("an early end");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

bool is(const Field& field, uint64_t number, Field::Wire wire) {
  return field.number == number && field.wire == wire;
}

std::string utf8(std::string_view bytes) {
  if (!io::is_utf8(bytes)) refuse_proto("a string that is not UTF-8");
  return std::string(bytes);
}

SentencePiece read_piece(std::string_view message) {
  SentencePiece piece;
  Field field;
  for (Fields fields(message); fields.next(field);) {
    if (is(field, 1, Field::Wire::Bytes)) piece.text = utf8(field.bytes);
    if (is(field, 2, Field::Wire::Fixed32))
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (is(field, 3, Field::Wire::Varint) && field.value >= 1 && field.value <= 6) {
      piece.type = static_cast<SentencePiece::Type>(field.value);
    }
  }
  return piece;
}

void read_trainer(std::string_view message, SentencePieceModel& model) {
  Field field;
  for (Fields fields(message); fields.next(field);) {
    const auto number = static_cast<int32_t>(static_cast<int64_t>(field.value));
    if (is(field, 3, Field::Wire::Varint) && field.value >= 1 && field.value <= 4) {
      model.kind = static_cast<SentencePieceModel::Kind>(field.value);
    }
    if (is(field, 24, Field::Wire::Varint)) model.treat_whitespace_as_suffix = field.value != 0;
    if (is(field, 35, Field::Wire::Varint)) model.byte_fallback = field.value != 0;
    if (is(field, 40, Field::Wire::Varint)) model.unk_id = number;
    if (is(field, 41, Field::Wire::Varint)) model.bos_id = number;
    if (is(field, 42, Field::Wire::Varint)) model.eos_id = number;
    if (is(field, 44, Field::Wire::Bytes)) model.unk_surface = utf8(field.bytes);
    if (is(field, 45, Field::Wire::Bytes)) model.unk_piece = utf8(field.bytes);
    if (is(field, 46, Field::Wire::Bytes)) model.bos_piece = utf8(field.bytes);
    if (is(field, 47, Field::Wire::Bytes)) model.eos_piece = utf8(field.bytes);
  }
}

void read_spelling(std::string_view message, SentencePieceSpelling& spelling) {
  Field field;
  for (Fields fields(message); fields.next(field);) {
    if (is(field, 2, Field::Wire::Bytes)) spelling.precompiled_charsmap = field.bytes;
    if (is(field, 3, Field::Wire::Varint)) spelling.add_dummy_prefix = field.value != 0;
    if (is(field, 4, Field::Wire::Varint)) spelling.remove_extra_whitespaces = field.value != 0;
    if (is(field, 5, Field::Wire::Varint)) spelling.escape_whitespaces = field.value != 0;
  }
}

}  // namespace

SentencePieceModel read_sentencepiece_proto(std::string_view bytes) {
  SentencePieceModel model;
  Field field;
  for (Fields fields(bytes); fields.next(field);) {
    if (is(field, 1, Field::Wire::Bytes)) model.pieces.push_back(read_piece(field.bytes));
    if (is(field, 2, Field::Wire::Bytes)) read_trainer(field.bytes, model);
    if (is(field, 3, Field::Wire::Bytes)) read_spelling(field.bytes, model.normalizer);
    if (is(field, 5, Field::Wire::Bytes)) read_spelling(field.bytes, model.denormalizer);
  }
  if (model.pieces.empty()) refuse_proto("one without pieces");
  return model;
}

}  // namespace posenc::text
