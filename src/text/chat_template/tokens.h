#pragma once

#include <string>
#include <vector>

namespace posenc::text::jinja {

/// A piece of a template.
struct TemplateToken {
  enum class Kind {
    Text,         ///< what is written as it is
    BlockBegin,   ///< {%
    BlockEnd,     ///< %}
    OutputBegin,  ///< {{
    OutputEnd,    ///< }}
    Name,
    String,  ///< its characters, without quotes and escapes
    Integer,
    Float,
    Symbol,  ///< such as `==` and `|`
    End,     ///< of the template; there is one
  };

  Kind kind;
  std::string text;
  int line;  ///< from 1

  bool is(Kind other, const char* of = nullptr) const {
    return kind == other && (of == nullptr || text == of);
  }
};

/// Throws c10::ValueError that names the line of a template and what is there.
[[noreturn]] void refuse_template(int line, const std::string& what);

/// The pieces of a template of Jinja with trim_blocks and lstrip_blocks, as transformers has it.
/// Throws c10::ValueError for characters that posenc does not know there.
std::vector<TemplateToken> template_tokens(const std::string& source);

}  // namespace posenc::text::jinja
