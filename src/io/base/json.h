#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace posenc::io {

/// Receives the events of a JSON text. A tree (json_tree.h) would take many times the size of the
/// text, and silently keep the last of two equal keys.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;

  virtual void start_object() = 0;
  /// Returns whether the value of this key is wanted; if not, none of it is reported. May move
  /// `name`.
  virtual bool key(std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  virtual void string(std::string& text) = 0;  ///< may move `text`
  virtual void number(uint64_t value) = 0;
  virtual void negative(int64_t value) { other(std::to_string(value)); }
  /// Also a whole number beyond 64 bits.
  virtual void real(double value, const std::string& text);
  virtual void boolean(bool value) { other(value ? "true" : "false"); }
  virtual void null() { other("null"); }
  /// Any other scalar, as text for messages.
  virtual void other(const std::string& text) = 0;
};

/// Reports the contents of `text` to `handler`. Throws WeightsError unless it is one JSON value in
/// UTF-8 (without a byte order mark or NUL), and if it is nested too deeply or larger than a
/// checkpoint's may be; `what`, "its header" for example, names the text in messages.
void parse_json(std::string_view text, const std::string& what, JsonHandler& handler);

/// `text` as a JSON string, in quotes. Throws WeightsError where it is not UTF-8.
std::string json_string(const std::string& text);

}  // namespace posenc::io
