#include <charconv>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "weights/torch/tensors.h"

namespace posenc::io {
namespace {

constexpr std::size_t kLongestText = 1000;  // bytes of a text
constexpr std::size_t kMostItems = 100;

// Like Python's repr: the shortest digits that read back as the same number.
std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[400];
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(buffer, end.ptr);
  if (fixed && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string integer_text(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (bytes.size() > 64) return "an integer of " + std::to_string(bytes.size()) + " bytes";
  std::string out = "0x";
  for (std::size_t i = bytes.size(); i-- > 0;) {
    out += kDigits[static_cast<unsigned char>(bytes[i]) >> 4];
    out += kDigits[bytes[i] & 0xf];
  }
  return out;
}

// Python's repr of bytes.
std::string bytes_text(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  const bool has_single = bytes.find('\'') != bytes.npos,
             has_double = bytes.find('"') != bytes.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out = {'b', quote};
  for (const char c : bytes) {
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c == '\t' || c == '\n' || c == '\r') {
      out += {'\\', c == '\t' ? 't' : c == '\n' ? 'n' : 'r'};
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  return out + quote;
}

// The bytes that a text in UTF-8 has in latin1: protocol 2 saves bytes like that.
std::optional<std::string> latin1(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      bytes += text[i];
    } else if ((byte == 0xc2 || byte == 0xc3) && i + 1 < text.size()) {
      bytes += static_cast<char>((byte & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

std::optional<std::string> scalar_text(TorchTensors& objects, PickleId id) {
  const Pickle& pickle = objects.pickle();
  switch (pickle.kind(id)) {
    case PickleKind::None: return "None";
    case PickleKind::Bool: return pickle.integer(id) != 0 ? "True" : "False";
    case PickleKind::Int: return std::to_string(pickle.integer(id));
    case PickleKind::BigInt: return integer_text(pickle.text(id));
    case PickleKind::Float: return real_text(pickle.real(id));
    case PickleKind::Text: return shortened(pickle.text(id), kLongestText);
    case PickleKind::Bytes: return std::to_string(pickle.text_size(id)) + " bytes";
    case PickleKind::Global:
      switch (objects.meaning(id).global) {
        case Global::DtypeName:
        case Global::OtherDtype: return pickle.global(id);
        default: return std::nullopt;
      }
    case PickleKind::Call: {
      const Global function = objects.called(id);
      const TupleItems items(pickle, pickle.arguments(id));
      if (items.empty() || !pickle.is(items[0], PickleKind::Text)) return std::nullopt;
      if (function == Global::Encode) {
        return std::to_string(pickle.text_size(items[0])) + " bytes";
      }
      if (function != Global::Device) return std::nullopt;
      const bool numbered = items.size() == 2 && pickle.is(items[1], PickleKind::Int);
      return shortened(pickle.text(items[0]), kLongestText) +
             (numbered ? ":" + std::to_string(pickle.integer(items[1])) : "");
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> plain_text(TorchTensors& objects, PickleId id) {
  const Pickle& pickle = objects.pickle();
  id = objects.resolve(id);
  const Global function = objects.called(id);
  if (function == Global::Sequence || function == Global::Set) {
    const TupleItems items(pickle, pickle.arguments(id));  // torch.Size((2, 3))
    if (!items.empty() && pickle.items(id) == kNoObject) id = items[0];
  }
  const char* brackets = nullptr;
  switch (pickle.kind(id)) {
    case PickleKind::Tuple: brackets = "()"; break;
    case PickleKind::List: brackets = "[]"; break;
    case PickleKind::Set: brackets = "{}"; break;
    case PickleKind::Dict: return pickle.count(id) == 0 ? std::optional("{}") : std::nullopt;
    default: return scalar_text(objects, id);
  }
  if (function == Global::Set) brackets = "{}";  // a set, though protocol 2 stores a list
  std::string out(1, brackets[0]);
  std::size_t shown = 0;
  for (auto at = pickle.items(id); at != kNoObject; at = pickle.next(at)) {
    const PickleId item = pickle.item(at);
    if (++shown > kMostItems) {
      // The rest is not shown, but has to be plain too.
      if (pickle.kind(item) > PickleKind::Bytes && !scalar_text(objects, item)) return std::nullopt;
      continue;
    }
    const auto text = scalar_text(objects, item);
    if (!text) return std::nullopt;
    if (shown > 1) out += ", ";
    const bool quoted = pickle.is(item, PickleKind::Text);
    if (quoted) out += '\'';
    out += *text;
    if (quoted) out += '\'';
  }
  if (shown > kMostItems) out += ", ... " + std::to_string(shown) + " items";
  if (shown == 1 && brackets[0] == '(') out += ",";
  return out + brackets[1];
}

std::string key_text(TorchTensors& objects, PickleId id) {
  const Pickle& pickle = objects.pickle();
  if (pickle.is(id, PickleKind::Text)) return std::string(pickle.text(id));
  if (pickle.is(id, PickleKind::Bytes)) return bytes_text(pickle.text(id));
  if (objects.called(id) == Global::Encode) {
    const TupleItems items(pickle, pickle.arguments(id));
    const bool is_text = !items.empty() && pickle.is(items[0], PickleKind::Text);
    if (const auto bytes = is_text ? latin1(pickle.text(items[0])) : std::nullopt) {
      return bytes_text(*bytes);
    }
  }
  return plain_text(objects, id).value_or("<" + objects.describe(id) + ">");
}

}  // namespace posenc::io
