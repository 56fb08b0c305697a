// What bounds a template, and the values that are made of others.
#include "text/chat_template/limits.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace posenc::text::jinja {
namespace {

constexpr int64_t kLeastBudget = 5'000'000, kStepsOfByte = 64;
constexpr int kDeepestValue = 200;

thread_local RenderBudget* budget_of_thread = nullptr;

int64_t size_of(const TemplateValue& value) {
  if (const std::string* text = value.text()) return std::ssize(*text);
  int64_t size = 1;
  if (const auto* dict = value.object<Dict>())
    for (const auto& [key, one] : dict->items) size += size_of(key) + size_of(one);
  if (const auto* sequence = value.object<Sequence>())
    for (const TemplateValue& one : sequence->items) size += size_of(one);
  return size;
}

void check_key(const TemplateValue& key) {
  if (key.is_none() || as_integer(key) || key.is<double>()) return;
  refuse("a key of a dict that posenc has is a text, a number, true, false or none. Got " +
         type_of(key));
}

}  // namespace

int depth_of(const TemplateValue& value) {
  if (const auto* sequence = value.object<Sequence>()) return sequence->depth;
  if (const auto* dict = value.object<Dict>()) return dict->depth;
  if (const auto* loop = value.object<Loop>()) return loop->depth;
  if (const auto* function = value.object<Function>()) return function->depth;
  const auto* const stream = std::get_if<std::shared_ptr<Stream>>(&value.data);
  return stream != nullptr ? (*stream)->depth : 0;
}

int depth_of(const TemplateValues& values) {
  int depth = 0;
  for (const TemplateValue& one : values) depth = std::max(depth, depth_of(one));
  return depth;
}

int depth_around(int depth) {
  if (depth == kDeepestValue) refuse("values must not be so deep");
  return depth + 1;
}

RenderBudget::RenderBudget(const NamedValues& names)
    : left_(kLeastBudget), before_(budget_of_thread) {
  for (const auto& [name, value] : names) left_ += kStepsOfByte * size_of(value);
  budget_of_thread = this;
}

RenderBudget::~RenderBudget() { budget_of_thread = before_; }

void spend(std::size_t steps) {
  if (budget_of_thread == nullptr) return;
  budget_of_thread->left_ -= static_cast<int64_t>(steps);
  if (budget_of_thread->left_ < 0) refuse("the template makes too much, or does not end");
}

TemplateValue list_value(TemplateValues items, Sequence::Kind kind) {
  spend(items.size());
  const int depth = depth_around(depth_of(items));
  return {std::shared_ptr<const Sequence>(
      std::make_shared<Sequence>(Sequence{kind, std::move(items), depth}))};
}
TemplateValue dict_value(NamedValues items) {
  KeyedValues keyed;
  keyed.reserve(items.size());
  for (auto& [name, value] : items)
    keyed.emplace_back(text_value(std::move(name)), std::move(value));
  return keyed_value(std::move(keyed));
}
TemplateValue keyed_value(KeyedValues items) {
  spend(items.size());
  Dict dict;
  std::unordered_map<std::string, std::size_t> places;  // of texts
  for (auto& [key, value] : items) {
    dict.depth = std::max(dict.depth, depth_around(depth_of(value)));
    std::size_t place = dict.items.size();
    if (const std::string* text = key.text()) {
      place = places.emplace(*text, place).first->second;
    } else {
      check_key(key);
      for (std::size_t i = 0; i < dict.items.size(); ++i)
        if (are_equal(dict.items[i].first, key)) place = i;
    }
    if (place == dict.items.size()) {
      dict.items.emplace_back(std::move(key), std::move(value));
    } else {
      dict.items[place].second = std::move(value);
    }
  }
  return {std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(dict)))};
}
TemplateValue function_value(std::string name,
                             std::function<TemplateValue(const TemplateArguments&)> call,
                             const TemplateValue& of) {
  return {std::shared_ptr<const Function>(std::make_shared<Function>(
      Function{std::move(name), std::move(call), depth_around(depth_of(of))}))};
}

}  // namespace posenc::text::jinja
