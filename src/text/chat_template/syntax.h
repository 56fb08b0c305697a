#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/chat_template/value.h"

namespace posenc::text::jinja {

/// An expression of a template.
struct TemplateExpression {
  enum class Kind {
    Literal,      ///< literal
    Name,         ///< name
    List,         ///< [parts]
    Tuple,        ///< (parts)
    Dict,         ///< {parts[0]: parts[1], ...}
    Attribute,    ///< parts[0].name
    Item,         ///< parts[0][parts[1]]
    Slice,        ///< parts[0][parts[1]:parts[2]:parts[3]]
    Call,         ///< parts[0](the others)
    Filter,       ///< parts[0] | name(the others)
    Test,         ///< parts[0] is name(the others)
    Argument,     ///< name=parts[0], of the three above
    Not,          ///< not parts[0]
    And,          ///< parts[0] and parts[1]
    Or,           ///< parts[0] or parts[1]
    Compare,      ///< parts[0], and an Operand each of the others
    Operand,      ///< name, which is == != < > <= >= in or `not in`, and parts[0]
    Binary,       ///< parts[0] name parts[1]
    Concat,       ///< parts[0] ~ parts[1]
    Negative,     ///< -parts[0]
    Positive,     ///< +parts[0]
    Conditional,  ///< parts[1] if parts[0] else parts[2], or without the last
  };

  Kind kind;
  int line;
  std::string name = {};
  std::vector<TemplateExpression> parts = {};
  TemplateValue literal = {};
};

/// A part of a template.
struct TemplateStatement {
  enum class Kind {
    Text,      ///< name
    Output,    ///< {{ expression[0] }}
    Set,       ///< {% set names = expression[0] %}, or name.attribute
    SetBlock,  ///< {% set names[0] | expression %} body {% endset %}
    For,       ///< {% for names in expression[0] if expression[1] %} body {% else %} otherwise
    If,        ///< {% if expression[0] %} body {% else %} otherwise {% endif %}
    Macro,     ///< {% macro name(names, the last ones = expression) %} body {% endmacro %}
    Scope,     ///< {% generation %} body {% endgeneration %}
    Break,
    Continue,
  };

  Kind kind;
  int line;
  std::string name = {};
  std::vector<std::string> names = {};
  bool is_elif = false;   ///< whether an If is the elif of another
  bool is_tuple = false;  ///< whether the names take the items of a value
  std::string attribute = {};
  std::vector<TemplateExpression> expression = {};
  std::vector<TemplateStatement> body = {}, otherwise = {};
  /// Names that are undefined where the body, or else, begins, whatever they are outside of it.
  std::vector<std::string> hidden = {}, hidden_otherwise = {};
};

/// A template: the body of a Scope. Throws c10::ValueError, which names it, for what posenc does
/// not know.
TemplateStatement parsed_template(const std::string& source);

/// Finds the hidden names of a template.
void find_hidden(TemplateStatement& whole);

}  // namespace posenc::text::jinja
