#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "posenc/text/chat_template.h"
#include "text/chat_template/syntax.h"

namespace posenc::text::jinja {

/// A template of Jinja, of which posenc knows what published chat templates use: the statements
/// break, continue, for, generation, if, macro and set; expressions except `*arguments`; most
/// methods of texts, dicts and lists, and most filters and tests. Whatever else a template has, or
/// reaches, is a c10::ValueError that names it and its line.
///
/// Source: Jinja 3.1, with the settings of transformers 5.23.
class TemplateProgram {
 public:
  explicit TemplateProgram(const std::string& source) : whole_(parsed_template(source)) {}

  /// What it makes of the values of names; `strftime_now`: what the function of this name returns.
  std::string render(const NamedValues& names,
                     const std::function<std::string(const std::string&)>& strftime_now) const;

 private:
  TemplateStatement whole_;
};

/// ChatTemplate::apply() of messages that are dicts.
std::string rendered_chat(const ChatTemplateParts& parts, TemplateValues messages,
                          const ChatTemplateOptions& options);

}  // namespace posenc::text::jinja

namespace posenc::text {

/// What a ChatTemplate holds.
struct ChatTemplateParts {
  std::string source;
  std::map<std::string, std::string> special_tokens;
  jinja::TemplateProgram program;
  std::optional<jinja::TemplateProgram> with_tools = {};  ///< that counts if there are tools
};

}  // namespace posenc::text
