#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace posenc::text {

/// Reads a JSON text from left to right. A tokenizer.json holds up to a million strings: a tree or
/// an event for each would take longer than all the rest of loading. Throws TokenizerError where
/// the text is not JSON.
class JsonCursor {
 public:
  /// `text` is UTF-8; `what`, "its model" for example, names it in messages. Both must outlive the
  /// cursor.
  JsonCursor(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  /// Whether the next value begins with `c`.
  bool next_is(char c);

  /// Reads an object; calls `member(key)` for each, which must read the value. The key is valid
  /// until then.
  template <typename Member>
  void object(const Member& member) {
    open('{', "an object");
    if (take('}')) return;
    do {
      const std::string_view key = string();
      expect(':');
      member(key);
    } while (take(','));
    expect('}');
  }

  /// Reads an array; calls `element()` for each, which must read the value.
  template <typename Element>
  void array(const Element& element) {
    open('[', "an array");
    if (take(']')) return;
    do {
      element();
    } while (take(','));
    expect(']');
  }

  /// Reads a string; the result is valid until the next one is read.
  std::string_view string();
  /// Reads a number; returns its text.
  std::string_view number();
  /// Reads any value; returns its text, in which only what separates values has been checked.
  std::string_view raw();
  /// Reads any value.
  nlohmann::json value();
  /// Requires that nothing follows.
  void end();

  [[noreturn]] void fail() const;

 private:
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  /// Requires that the next value begins with `c`, as `kind` does.
  void open(char c, const char* kind) {
    if (!next_is(c)) refuse(kind);
    ++at_;
  }
  [[noreturn]] void refuse(const char* kind) const;
  std::size_t end_of_plain(std::size_t at) const;
  void escape();
  char32_t hex4();

  std::string_view text_, what_;
  std::size_t at_ = 0;
  std::string unescaped_;
};

/// The value of a JSON text that is not nested too deeply. Throws TokenizerError.
nlohmann::json json_value(std::string_view text, std::string_view what);

}  // namespace posenc::text
