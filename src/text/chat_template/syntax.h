#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace posenc::text {

/// An expression of a template.
struct TemplateExpression {
  enum class Kind {
    Literal,    ///< literal
    Name,       ///< name
    Attribute,  ///< parts[0].name
    Item,       ///< parts[0][parts[1]]
    Not,        ///< not parts[0]
    And,        ///< parts[0] and parts[1]
    Or,         ///< parts[0] or parts[1]
    Equal,      ///< parts[0] == parts[1]
    In,         ///< parts[0] in parts[1]
    Filter,     ///< parts[0] | name(the others)
    Argument,   ///< name=parts[0], of a filter
  };

  Kind kind;
  int line;
  std::string name = {};
  std::vector<TemplateExpression> parts = {};
  nlohmann::json literal = {};
};

/// A part of a template.
struct TemplateStatement {
  enum class Kind {
    Text,    ///< name
    Output,  ///< {{ expression }}
    Set,     ///< {% set name = expression %}
    For,     ///< {% for name in expression %} body {% endfor %}
    If,      ///< {% if expression %} body {% else %} otherwise {% endif %}
  };

  Kind kind;
  int line;
  std::string name = {};
  std::vector<TemplateExpression> expression = {};  ///< one, but for Text
  std::vector<TemplateStatement> body = {}, otherwise = {};
};

/// The parts of a template. Throws c10::ValueError, which names it, for what posenc does not know.
std::vector<TemplateStatement> parsed_template(const std::string& source);

}  // namespace posenc::text
