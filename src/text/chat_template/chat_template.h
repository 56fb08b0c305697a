#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/chat_template/syntax.h"

namespace posenc::text {

/// A chat template: the part of Jinja that rerankers' templates use. Statements set, for and if;
/// attributes and items, strings, integers, `==`, `!=`, `in`, `not`, `and` and `or`; the filters
/// default, first, join, last, length, list, map, rejectattr, selectattr and trim, with the tests
/// eq, in and ne. Whatever else a template has, or reaches, is a c10::ValueError that names it and
/// its line.
///
/// Source: Jinja 3.1, with the settings of transformers 5.23.
class ChatTemplate {
 public:
  explicit ChatTemplate(const std::string& source) : statements_(parsed_template(source)) {}

  /// What it makes of the values of names, an object: `messages` and others.
  std::string render(const nlohmann::json& names) const;

 private:
  std::vector<TemplateStatement> statements_;
};

}  // namespace posenc::text
