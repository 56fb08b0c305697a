#include "posenc/text/chat_template.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <locale>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "models/sentence/transformer_settings.h"
#include "text/chat_template/program.h"
#include "text/chat_template/python_text.h"

namespace posenc {
namespace text::jinja {

namespace {

constexpr const char* kName = "[ChatTemplate] ";

void check_utf8(const std::string& text, const char* what) {
  TORCH_CHECK_VALUE(io::is_utf8(text), kName, what, " must be UTF-8. Got ", io::in_quotes(text));
}

TemplateValue parsed(const std::string& json, const char* what) {
  try {
    return value_of_json(json, what);
  } catch (const base::JsonError& error) {
    TORCH_CHECK_VALUE(false, kName, "the text ", error.what());
  } catch (const TemplateRefusal& error) {
    TORCH_CHECK_VALUE(false, kName, error.what());
  }
}

// As datetime.now().strftime() writes it in the C locale.
std::string local_time(const std::string& format) {
  constexpr std::string_view kKnown = "aAwdbBmyYHIpMSjUWcxX%";
  for (std::size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 2)) {
    if (i + 1 >= format.size() || kKnown.find(format[i + 1]) == std::string_view::npos)
      refuse("strftime_now has the format " + io::in_quotes(format.substr(i, 2)) +
             ", which posenc does not know");
  }
  const std::time_t seconds = std::time(nullptr);
  std::tm now = {};
  localtime_r(&seconds, &now);
  std::ostringstream text;
  text.imbue(std::locale::classic());
  std::use_facet<std::time_put<char>>(text.getloc())
      .put(std::ostreambuf_iterator<char>(text), text, ' ', &now, format.data(),
           format.data() + format.size());
  return text.str();
}

// A message as transformers gives it to a template: without null, and with the names that
// templates have for the thoughts before an answer.
TemplateValue settled(const TemplateValue& message) {
  const Dict* const given = message.object<Dict>();
  TORCH_CHECK_VALUE(given != nullptr, kName, "each message must be an object of JSON. Got a ",
                    type_of(message));
  Dict own;
  for (const auto& [name, value] : given->items)
    if (!value.is_none()) own.items.emplace_back(name, value);
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const TemplateValue* const found = own.find(name);
    if (found == nullptr) continue;
    KeyedValues all = {{text_value("thinking"), *found}};
    all.insert(all.end(), own.items.begin(), own.items.end());
    all.emplace_back(text_value("reasoning_content"), *found);
    return keyed_value(std::move(all));  // the later ones of a name count
  }
  return keyed_value(std::move(own.items));
}

constexpr const char* kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

// A content with a mark after its text, or after that of its last part with one, and this text.
std::pair<TemplateValue, std::string> marked(const TemplateValue& content) {
  if (const std::string* text = content.text()) return {text_value(*text + kMark), *text};
  const auto* const sequence = content.object<Sequence>();
  TemplateValues parts = sequence != nullptr ? sequence->items : TemplateValues();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const Dict* const own = part->object<Dict>();
    const TemplateValue* const found = own != nullptr ? own->find("text") : nullptr;
    if (found == nullptr || found->text() == nullptr) continue;
    const std::string text = *found->text();
    Dict changed = *own;
    changed.set("text", text_value(text + kMark));
    *part = keyed_value(std::move(changed.items));
    return {list_value(std::move(parts)), text};
  }
  TORCH_CHECK_VALUE(false, kName,
                    "the last message must have a content with a text, to be continued");
}

// Marks the last of the messages; returns its text.
std::string mark_last(TemplateValues& messages) {
  Dict last = *messages.back().object<Dict>();
  const TemplateValue* const content = last.find("content");
  auto [with_mark, text] = marked(content != nullptr ? *content : undefined("content"));
  last.set("content", std::move(with_mark));
  messages.back() = keyed_value(std::move(last.items));
  return text;
}

// The text up to the mark, without the blanks before it where the template took those after it.
std::string cut_at_mark(const std::string& text, const std::string& last) {
  const std::string mark = kMark, word = stripped(mark);
  const std::size_t at = text.rfind(word);
  const bool has_last = text.find(stripped(last)) != std::string::npos;
  TORCH_CHECK_VALUE(has_last && at != std::string::npos, kName,
                    "the template must write the last message as it is, to be continued");
  const std::string before = text.substr(0, at);
  return text.compare(at, mark.size(), mark) == 0 ? before : stripped(before, {}, false, true);
}

NamedValues names_of(const ChatTemplateParts& parts, const ChatTemplateOptions& options) {
  const TemplateValue variables = parsed(options.variables(), "variables");
  TORCH_CHECK_VALUE(variables.object<Dict>() != nullptr, kName,
                    "variables must be an object of JSON. Got ",
                    io::in_quotes(options.variables()));
  NamedValues names = {{"tools", {nullptr}},
                       {"documents", {nullptr}},
                       {"add_generation_prompt", {options.add_generation_prompt()}}};
  for (const auto& [name, token] : parts.special_tokens)
    names.emplace_back(name, text_value(token));
  for (const auto& [key, value] : variables.object<Dict>()->items) {
    const std::string& name = *key.text();  // as all of JSON
    TORCH_CHECK_VALUE(name != "messages" && name != "add_generation_prompt", kName,
                      "variables must not have ", name, ", which has an argument of its own");
    names.emplace_back(name, value);
  }
  return names;
}

bool has_tools(const NamedValues& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const auto& one) { return one.first == "tools" && !one.second.is_none(); });
}

}  // namespace

std::string rendered_chat(const ChatTemplateParts& parts, TemplateValues messages,
                          const ChatTemplateOptions& options) {
  TORCH_CHECK_VALUE(!messages.empty(), kName, "there must be at least one message");
  TORCH_CHECK_VALUE(!options.continue_final_message() || !options.add_generation_prompt(), kName,
                    "add_generation_prompt and continue_final_message must not both be set");
  for (TemplateValue& one : messages) one = settled(one);
  NamedValues names = names_of(parts, options);
  std::string last;
  if (options.continue_final_message()) last = mark_last(messages);
  names.emplace_back("messages", list_value(std::move(messages)));
  const auto& program = parts.with_tools && has_tools(names) ? *parts.with_tools : parts.program;
  std::string text =
      program.render(names, options.strftime_now() ? options.strftime_now() : local_time);
  return options.continue_final_message() ? cut_at_mark(text, last) : text;
}

}  // namespace text::jinja

ChatTemplate::ChatTemplate(const std::string& source,
                           std::map<std::string, std::string> special_tokens) {
  for (const auto& [name, token] : special_tokens) text::jinja::check_utf8(token, name.c_str());
  parts_ = std::make_shared<const text::ChatTemplateParts>(text::ChatTemplateParts{
      source, std::move(special_tokens), text::jinja::TemplateProgram(source)});
}

ChatTemplate ChatTemplate::from_folder(const std::string& folder, const Tokenizer& tokenizer,
                                       const std::string& name) {
  const auto source = chat_template_source("ChatTemplate", folder, name);
  TORCH_CHECK_VALUE(source, text::jinja::kName, folder, ": must have a chat template of the name ",
                    io::in_quotes(name));
  ChatTemplate chat(*source, tokenizer.special_tokens_map());
  const bool is_default = name == "default";
  if (const auto other = chat_template_source("ChatTemplate", folder, "tool_use");
      other && is_default) {
    text::ChatTemplateParts parts = *chat.parts_;
    parts.with_tools.emplace(*other);
    chat.parts_ = std::make_shared<const text::ChatTemplateParts>(std::move(parts));
  }
  return chat;
}

std::string ChatTemplate::apply(const std::vector<ChatMessage>& messages,
                                const ChatTemplateOptions& options) const {
  text::jinja::TemplateValues all;
  for (const ChatMessage& one : messages) {
    text::jinja::check_utf8(one.role, "a role");
    text::jinja::check_utf8(one.content, "a content");
    all.push_back(text::jinja::dict_value({{"role", text::jinja::text_value(one.role)},
                                           {"content", text::jinja::text_value(one.content)}}));
  }
  return text::jinja::rendered_chat(*parts_, std::move(all), options);
}

std::string ChatTemplate::apply_json(const std::string& messages,
                                     const ChatTemplateOptions& options) const {
  const text::jinja::TemplateValue all = text::jinja::parsed(messages, "messages");
  const auto* const list = all.object<text::jinja::Sequence>();
  TORCH_CHECK_VALUE(list != nullptr, text::jinja::kName, "messages must be a list of JSON. Got a ",
                    text::jinja::type_of(all));
  return text::jinja::rendered_chat(*parts_, list->items, options);
}

const std::string& ChatTemplate::source() const { return parts_->source; }
const std::map<std::string, std::string>& ChatTemplate::special_tokens() const {
  return parts_->special_tokens;
}

std::ostream& operator<<(std::ostream& stream, const ChatTemplate& chat) {
  return stream << "posenc::ChatTemplate(bytes=" << chat.source().size() << ")";
}

}  // namespace posenc
