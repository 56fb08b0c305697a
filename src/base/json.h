#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace posenc::base {

/// Why a JSON text is refused. what() begins with a verb whose subject is the text's file.
class JsonError : public std::runtime_error {
 public:
  enum class Kind { Corrupt, LimitExceeded };
  JsonError(Kind kind, const std::string& reason) : std::runtime_error(reason), kind_(kind) {}

  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// Receives the events of a JSON text. A tree (JsonTree) would take many times the size of the
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
  /// Also an integer beyond 64 bits.
  virtual void real(double value, const std::string& text);
  virtual void boolean(bool value) { other(value ? "true" : "false"); }
  virtual void null() { other("null"); }
  /// Any other scalar, as text for messages.
  virtual void other(const std::string& text) = 0;
};

/// Which numbers a JSON text may have.
enum class JsonNumbers {
  Finite,    ///< those of JSON
  OfPython,  ///< also NaN, Infinity and -Infinity, which Python's json module writes
};

/// Reports the contents of `text` to `handler`. Throws JsonError unless it is one JSON value in
/// UTF-8 (without a byte order mark or NUL), and if it is nested too deeply or larger than a
/// checkpoint's may be; `what`, "its header" for example, names the text in messages.
void parse_json(std::string_view text, const std::string& what, JsonHandler& handler,
                JsonNumbers numbers = JsonNumbers::Finite);

/// A text of Python's json module as JSON, with numbers that `special_number` knows in place of NaN
/// and infinities; the same text if there are none.
std::string with_special_numbers(std::string_view text);
/// The value that a number of with_special_numbers() stands for.
std::optional<double> special_number(std::string_view number);

/// Builds a value of one of nlohmann's types from the events of a text.
template <typename Json>
class JsonTree : public JsonHandler {
 public:
  /// `what` names the text in errors, such as "its settings".
  explicit JsonTree(std::string what) : what_(std::move(what)) {}

  Json& root() { return root_; }

  void start_object() override { open(Json::object()); }
  void start_array() override { open(Json::array()); }
  void end_object() override { open_.pop_back(); }
  void end_array() override { open_.pop_back(); }
  bool key(std::string& name) override {
    if (open_.back()->contains(name)) {
      throw JsonError(JsonError::Kind::Corrupt, "must have each name once in " + what_ + ". Got " +
                                                    io::in_quotes(name) + " twice");
    }
    key_ = std::move(name);
    return true;
  }
  void string(std::string& text) override { add(std::move(text)); }
  void number(uint64_t value) override { add(value); }
  void negative(int64_t value) override { add(value); }
  void real(double value, const std::string&) override { add(value); }
  void boolean(bool value) override { add(value); }
  void null() override { add(nullptr); }
  void other(const std::string&) override {}

 private:
  Json* add(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &((*open_.back())[key_] = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  void open(Json value) { open_.push_back(add(std::move(value))); }

  std::string what_;
  Json root_;
  std::vector<Json*> open_;  // objects and arrays around the next value
  std::string key_;          // of the next value in an object
};

/// The value of a small text, such as a file of settings, with Python's numbers. Throws
/// JsonError as parse_json() does, and for two equal keys of an object.
template <typename Json>
Json json_tree(std::string_view text, const std::string& what) {
  JsonTree<Json> tree(what);
  parse_json(text, what, tree, JsonNumbers::OfPython);
  return std::move(tree.root());
}

}  // namespace posenc::base
