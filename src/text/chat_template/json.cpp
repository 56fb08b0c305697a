// JSON as values, and values as Python's json.dumps() writes them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/value.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::jinja {
namespace {

// Builds a value of the events of a text.
class ValueBuilder final : public base::JsonHandler {
 public:
  void start_object() override { open_.push_back({true}); }
  void start_array() override { open_.push_back({false}); }
  void end_object() override {
    NamedValues named;
    Open done = close();
    for (std::size_t i = 0; i < done.items.size(); ++i)
      named.emplace_back(std::move(done.names[i]), std::move(done.items[i]));
    add(dict_value(std::move(named)));
  }
  void end_array() override { add(list_value(close().items)); }
  bool key(std::string& name) override {
    open_.back().names.push_back(std::move(name));
    return true;
  }
  void string(std::string& text) override { add(text_value(std::move(text))); }
  void number(uint64_t value) override {
    if (value > INT64_MAX)
      refuse("an integer of JSON must be in 64 bits. Got " + std::to_string(value));
    add({static_cast<int64_t>(value)});
  }
  void negative(int64_t value) override { add({value}); }
  void real(double value, const std::string& text) override {
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      refuse("an integer of JSON must be in 64 bits. Got " + text);
    add({value});
  }
  void boolean(bool value) override { add({value}); }
  void null() override { add({nullptr}); }
  void other(const std::string&) override {}

  TemplateValue take() { return std::move(root_); }

 private:
  struct Open {
    bool is_object;
    std::vector<std::string> names = {};
    TemplateValues items = {};
  };
  Open close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return done;
  }
  void add(TemplateValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
  }

  std::vector<Open> open_;
  TemplateValue root_;
};

// Arguments of json.dumps().
struct Style {
  bool is_ascii = false;
  std::optional<std::string> indent = {};
  std::string between = ", ", after_name = ": ";
  bool sorts = false;
};

Style style_of(const TemplateArguments& arguments) {
  const auto given =
      bound(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  const auto has = [&](std::size_t i) { return given[i] && !given[i]->is_none(); };
  Style style;
  style.is_ascii = has(0) && is_true(*given[0]);
  if (has(1)) {
    const int64_t width = given[1]->text() != nullptr ? 0 : integer_in(*given[1], "indent");
    style.indent =
        given[1]->text() != nullptr
            ? *given[1]->text()
            : std::string(static_cast<std::size_t>(std::clamp<int64_t>(width, 0, 1000)), ' ');
    style.between = ",";
  }
  if (has(2)) {
    const TemplateValues both = all_of(*given[2]);
    if (both.size() != 2) refuse("separators must be two texts");
    style.between = text_in(both[0], "a separator");
    style.after_name = text_in(both[1], "a separator");
  }
  style.sorts = has(3) && is_true(*given[3]);
  return style;
}

void write_code(std::string& out, char32_t unit) {
  std::array<char, 16> code = {};
  std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(unit));
  out += code.data();
}

void write_text(std::string& out, const std::string& text, bool is_ascii) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    const std::size_t short_one = std::u32string_view(U"\"\\\n\r\t\f\b").find(c);
    if (short_one != std::u32string_view::npos) {
      out += {'\\', "\"\\nrtfb"[short_one]};
    } else if (is_ascii && c >= 0x10000) {
      write_code(out, 0xD800 + ((c - 0x10000) >> 10));
      write_code(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else if (c < 0x20 || (is_ascii && c >= 0x7F)) {
      write_code(out, c);
    } else {
      append_character(out, c);
    }
  }
  out += '"';
}

class Writer {
 public:
  explicit Writer(Style style) : style_(std::move(style)) {}

  std::string take() { return std::move(out_); }

  void write(const TemplateValue& value) {
    spend(1);
    if (const std::string* text = value.text()) {
      spend_text(text->size());
      return write_text(out_, *text, style_.is_ascii);
    }
    if (value.is_none()) {
      out_ += "null";
    } else if (const bool* truth = value.get<bool>()) {
      out_ += *truth ? "true" : "false";
    } else if (const double* real = value.get<double>()) {
      out_ += std::isfinite(*real) ? number_text(*real)
              : std::isnan(*real)  ? "NaN"
                                   : (*real < 0 ? "-Infinity" : "Infinity");
    } else if (value.is<int64_t>()) {
      out_ += text_of(value);
    } else if (const auto* dict = value.object<Dict>()) {
      write_dict(*dict);
    } else if (const auto* sequence = value.object<Sequence>();
               sequence != nullptr && (sequence->kind == Sequence::Kind::List ||
                                       sequence->kind == Sequence::Kind::Tuple)) {
      write_all('[', ']', sequence->items, [&](const TemplateValue& one) { write(one); });
    } else {
      refuse("a value of the type " + type_of(value) + " is not for JSON");
    }
  }

 private:
  template <typename Items, typename Write>
  void write_all(char begin, char end, const Items& items, Write write_one) {
    out_ += begin;
    ++depth_;
    bool is_first = true;
    for (const auto& one : items) {
      if (!is_first) out_ += style_.between;
      is_first = false;
      new_line();
      write_one(one);
    }
    --depth_;
    if (!items.empty()) new_line();
    out_ += end;
  }
  // What json.dumps() makes of a key.
  static std::string key_text(const TemplateValue& key) {
    Writer writer{Style()};
    if (key.text() == nullptr) writer.write(key);
    return key.text() != nullptr ? *key.text() : writer.take();
  }
  void write_dict(const Dict& dict) {
    KeyedValues items = dict.items;
    if (style_.sorts)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return is_less(a.first, b.first); });
    write_all('{', '}', items, [&](const auto& one) {
      write_text(out_, key_text(one.first), style_.is_ascii);
      out_ += style_.after_name;
      write(one.second);
    });
  }
  void new_line() {
    if (!style_.indent) return;
    out_ += '\n';
    spend_text(static_cast<std::size_t>(depth_) * style_.indent->size());
    for (int i = 0; i < depth_; ++i) out_ += *style_.indent;
  }

  const Style style_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

TemplateValue value_of_json(std::string_view json, const std::string& what) {
  ValueBuilder builder;
  base::parse_json(json, what, builder, base::JsonNumbers::OfPython);
  return builder.take();
}

std::string json_of(const TemplateValue& value, const TemplateArguments& arguments) {
  Writer writer(style_of(arguments));
  writer.write(value);
  return writer.take();
}

}  // namespace posenc::text::jinja
