// What posenc does not know of Jinja, by name and line. What templates write,
// tests/differential/rerank.py compares with Jinja.
#include "text/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include "support/compare.h"

namespace posenc::testing {
namespace {

using text::ChatTemplate;

std::string rendered(const std::string& source) {
  return ChatTemplate(source).render(
      {{"messages", {{{"role", "query"}, {"content", "Where?"}}}}, {"x", "a"}});
}

TEST(ChatTemplate, WritesWhatItSays) {
  EXPECT_EQ(
      rendered("{% for m in messages -%}\n  <{{ m.role }}>: {{ m['content'] }}\n{% endfor %}"),
      "<query>: Where?\n");
  EXPECT_EQ(rendered("{%- set q = messages | selectattr('role', 'eq', 'query') | map(attribute="
                     "'content') | first | default('none') -%}\n{{ q }}"),
            "Where?");
}

TEST(ChatTemplate, NamesWhatItDoesNotKnow) {
  const auto refuses = [](const std::string& source, const std::string& why) {
    EXPECT_ERROR(rendered(source), c10::ValueError, "[chat_template] line " + why);
  };
  refuses("\n{% macro a() %}{% endmacro %}",
          "2: 'macro' is a statement that posenc does not know: it has set, for and if");
  refuses("{{ x | upper }}", "1: the filter 'upper' is not known to posenc");
  refuses("{{ x | trim('a') }}", "1: these arguments of trim are not known to posenc");
  refuses("{{ messages | selectattr('role', 'odd', 1) | first }}",
          "1: these arguments of selectattr are not known to posenc");
  refuses("{{ x.strip() }}", "1: '(' is where }} must be");
  refuses("{{ x ~ 'b' }}", "1: '~' is where }} must be");
  refuses("{{ 'a' if x else 'b' }}", "1: 'if' is where }} must be");
  refuses("{% for m in messages if m %}{% endfor %}", "1: 'if' is where %} must be");
  refuses("{{ x", "1: a tag does not end");
  refuses("{# x", "1: a comment does not end");
  refuses("{{ 'x }}", "1: a string does not end");
  refuses("{{ '\\u0041' }}", "1: a string must have no other escapes than");
  refuses("{{ x $ }}", "1: a tag must not have '$'");
  refuses("{% if x %}a", "1: the end of a tag or of the template is where endif must be");
  refuses("{% endif %}", "1: 'endif' is a statement that posenc does not know");
  refuses("{{ messages }}", "1: a list or an object is written as a text, which posenc does not");
  refuses("{% for m in x %}{% endfor %}", "1: what is gone through must be a list");
  refuses("{{ nothing.role }}", "1: what has the attribute role must be defined");
  refuses("{{ messages[x] }}{{ messages['role'][0] }}", "1: what has items must be defined");
  refuses("{% set m = messages | map(attribute='role') %}",
          "1: after map there must be first, join, list or a filter of items, unless it is in for");
  refuses("{{ " + std::string(200, '(') + "x" + std::string(200, ')') + " }}",
          "1: statements and expressions must not be so deep");
  std::string longest = "{{ x";
  for (int i = 0; i < 2000; ++i) longest += ".x";
  refuses(longest + " }}", "1: a tag must not be so long");
}

}  // namespace
}  // namespace posenc::testing
