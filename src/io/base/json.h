#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace posenc::io {

/// Takes the events of a JSON text. A tree instead would cost many times the text, keep the last of
/// two equal keys in silence, and recurse as deep as the file likes.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;

  virtual void start_object() = 0;
  /// Whether the value of this key is wanted; if not, nothing of it is reported. May take the text.
  virtual bool key(std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  virtual void string(std::string& text) = 0;  ///< may take the text
  virtual void number(uint64_t value) = 0;
  /// Any other scalar: negative and real numbers, numbers beyond 64 bits, true, false, null.
  virtual void other(const std::string& text) = 0;
};

/// Tells `handler` what `text` holds. Throws WeightsError for what is not one JSON value in UTF-8
/// (a byte order mark and NUL included), for deep nesting and for more bytes or values than a
/// checkpoint has; `what`, "its header" for one, stands for the text in messages.
void parse_json(std::string_view text, const std::string& what, JsonHandler& handler);

}  // namespace posenc::io
