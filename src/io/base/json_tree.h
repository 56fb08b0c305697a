#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/base/json.h"
#include "io/base/quote.h"
#include "posenc/io/error.h"

namespace posenc::io {

/// Builds a value of one of nlohmann's types from the events of a text.
template <typename Json>
class JsonTree : public JsonHandler {
 public:
  /// `unique`, for errors such as "its settings": two equal keys of an object are an error.
  explicit JsonTree(std::string unique = "") : unique_(std::move(unique)) {}

  Json& root() { return root_; }

  void start_object() override { open(Json::object()); }
  void start_array() override { open(Json::array()); }
  void end_object() override { open_.pop_back(); }
  void end_array() override { open_.pop_back(); }
  bool key(std::string& name) override {
    if (!unique_.empty() && open_.back()->contains(name)) {
      throw WeightsError(WeightsErrorCode::Corrupt, "must have each name once in " + unique_ +
                                                        ". Got " + in_quotes(name) + " twice");
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

  std::string unique_;
  Json root_;
  std::vector<Json*> open_;  // objects and arrays around the next value
  std::string key_;          // of the next value in an object
};

/// The value of a small text, such as a file of settings; of two equal keys the last, as in Python.
/// Throws WeightsError as parse_json() does.
template <typename Json>
Json json_tree(std::string_view text, const std::string& what) {
  JsonTree<Json> tree;
  parse_json(text, what, tree);
  return std::move(tree.root());
}

/// The same; two equal keys of an object are an error.
template <typename Json>
Json unique_json_tree(std::string_view text, const std::string& what) {
  JsonTree<Json> tree(what);
  parse_json(text, what, tree);
  return std::move(tree.root());
}

}  // namespace posenc::io
