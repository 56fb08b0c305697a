// ChatTemplate's options, and what posenc does not know of Jinja, by name and line. What templates
// write, tests/differential/chat_templates.py compares with transformers.
#include "posenc/text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc::testing {
namespace {

const std::vector<ChatMessage> kMessages = {{"query", "Where?"}};

std::string rendered(const std::string& source) {
  return ChatTemplate(source).apply(kMessages, ChatTemplateOptions().variables(R"({"x": "a"})"));
}

TEST(ChatTemplate, WritesWhatItSays) {
  EXPECT_EQ(
      rendered("{% for m in messages -%}\n  <{{ m.role }}>: {{ m['content'] }}\n{% endfor %}"),
      "<query>: Where?\n");
  EXPECT_EQ(rendered("{%- set q = messages | selectattr('role', 'eq', 'query') | map(attribute="
                     "'content') | first | default('none') -%}\n{{ q }}"),
            "Where?");
  EXPECT_EQ(
      rendered("{% macro f(a, b='c') %}{{ a ~ b }}{% endmacro %}{{ f(x) }}{{ f(1, [none]) }}"),
      "ac1[None]");
}

TEST(ChatTemplate, HasItemsByTuples) {
  EXPECT_EQ(rendered("{{ {'a': 1}['a', 'b'] is defined }}{{ messages[] is defined }}"),
            "FalseFalse");
}

TEST(ChatTemplate, HasDictsOfNumbers) {
  EXPECT_EQ(rendered("{% set d = {512: 'a', 0: 'b', 1: x} %}{{ d[512] }}{{ d[1.0] }}{{ d[true] }}"
                     "{{ d['1'] is defined }}{{ 0 in d }}{{ d.get(7, 'c') }}{{ d }}"),
            "aaaFalseTruec{512: 'a', 0: 'b', 1: 'a'}");
  EXPECT_EQ(
      rendered(
          "{% for k, v in {512: 1, 0: 2}|dictsort %}{{ k + v }} {% endfor %}"
          "{{ {none: 1, 2.5: 2, true: 3} | tojson }}{{ {2: 1, 1: 2}|tojson(sort_keys=true) }}"),
      R"(2 513 {"null": 1, "2.5": 2, "true": 3}{"1": 2, "2": 1})");
  EXPECT_ERROR(
      rendered("{{ {(1, 2): 1} }}"), c10::ValueError,
      "a key of a dict that posenc has is a text, a number, true, false or none. Got tuple");
}

// What a template is given may be longer than what it may make by itself.
TEST(ChatTemplate, WritesLongMessages) {
  const std::string content(20'000'000, 'a');
  EXPECT_EQ(ChatTemplate("{% for m in messages %}{% set c = m.content %}{{ c|trim }}{% endfor %}")
                .apply({{"user", content}}),
            content);
}

TEST(ChatTemplate, KnowsBlanksBeyondAscii) {
  EXPECT_EQ(rendered("{{ '\\u3000\\xa0b\\x1c' | trim }}{{ '\\u2003b '.strip() }}"), "bb");
  EXPECT_EQ(rendered("a\u3000{{- x -}}\u00a0b"), "aab");
  EXPECT_EQ(rendered("{{ '\u00e4\u00f6'[1] }}{{ '\u00e4\u00f6' | length }}"), "\u00f62");
}

TEST(ChatTemplate, BeginsAndContinuesAnswers) {
  const ChatTemplate chat(
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}");
  const std::vector<ChatMessage> messages = {{"user", "Hi"}, {"assistant", "Well, "}};
  EXPECT_EQ(chat.apply(messages, ChatTemplateOptions().add_generation_prompt(true)),
            "<user>Hi</s><assistant>Well,</s><assistant>");
  EXPECT_EQ(chat.apply(messages, ChatTemplateOptions().continue_final_message(true)),
            "<user>Hi</s><assistant>Well,");
  EXPECT_ERROR(
      chat.apply(messages,
                 ChatTemplateOptions().continue_final_message(true).add_generation_prompt(true)),
      c10::ValueError, "must not both be set");
  EXPECT_ERROR(
      ChatTemplate("x").apply(messages, ChatTemplateOptions().continue_final_message(true)),
      c10::ValueError, "the template must write the last message as it is");
}

TEST(ChatTemplate, TakesSpecialTokensVariablesAndDates) {
  const ChatTemplate chat("{{ bos_token }}{{ name }}{{ strftime_now('%d %b') }}{{ tools is none }}",
                          {{"bos_token", "<s>"}});
  EXPECT_EQ(chat.apply(kMessages, ChatTemplateOptions()
                                      .variables(R"({"name": {"b": 1.0, "a": [true, null]}})")
                                      .strftime_now([](const std::string& format) {
                                        return "(" + format + ")";
                                      })),
            "<s>{'b': 1.0, 'a': [True, None]}(%d %b)True");
  EXPECT_EQ(chat.apply(kMessages).size(), std::string("<s>01 JanTrue").size());
  EXPECT_EQ(chat.special_tokens().at("bos_token"), "<s>");
}

TEST(ChatTemplate, ReadsMessagesOfJson) {
  const ChatTemplate chat("{{ messages[0] | tojson }}");
  EXPECT_EQ(chat.apply_json(R"([{"role": "user", "content": null, "reasoning": "b"}])"),
            R"({"thinking": "b", "role": "user", "reasoning": "b", "reasoning_content": "b"})");
  EXPECT_ERROR(chat.apply_json("{}"), c10::ValueError,
               "messages must be a list of JSON. Got a dict");
  EXPECT_ERROR(chat.apply_json("[1]"), c10::ValueError, "each message must be an object of JSON");
  EXPECT_ERROR(chat.apply_json("[{]"), c10::ValueError, "must have JSON in UTF-8");
  EXPECT_ERROR(chat.apply_json("[12345678901234567890]"), c10::ValueError, "in 64 bits");
  EXPECT_ERROR(chat.apply_json("[]"), c10::ValueError, "there must be at least one message");
  EXPECT_ERROR(chat.apply({{"user", "\xff"}}), c10::ValueError, "a content must be UTF-8");
  EXPECT_ERROR(chat.apply(kMessages, ChatTemplateOptions().variables("[]")), c10::ValueError,
               "variables must be an object of JSON. Got '[]'");
  EXPECT_ERROR(chat.apply(kMessages, ChatTemplateOptions().variables(R"({"messages": 1})")),
               c10::ValueError, "variables must not have messages");
}

TEST(ChatTemplate, IsReadFromAFolder) {
  const std::string folder = POSENC_LIVE_DIR "/encoder/reranker";
  const auto tokenizer = Tokenizer::from_folder(folder);
  EXPECT_ERROR(ChatTemplate::from_folder(folder, tokenizer), c10::ValueError,
               "must have a chat template of the name 'default'");
  const TempDir scratch;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(scratch / name).parent_path());
    std::ofstream(scratch / name) << text;
  };
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "a"},
                                                       {"name": "tool_use", "template": "b"}]})");
  const auto at = [&](const std::string& name) {
    return ChatTemplate::from_folder(scratch.path().string(), tokenizer, name).source();
  };
  EXPECT_EQ(at("default") + at("tool_use"), "ab");
  const auto chat = ChatTemplate::from_folder(scratch.path().string(), tokenizer);
  const auto with = [&](const char* json) {
    return chat.apply(kMessages, ChatTemplateOptions().variables(json));
  };
  EXPECT_EQ(with("{}") + with(R"({"tools": null})") + with(R"({"tools": []})"), "aab");
  write("chat_template.jinja", "c");
  write("additional_chat_templates/rag.jinja", "d");
  EXPECT_EQ(at("default") + at("rag"), "cd");
  EXPECT_ERROR(at("tool_use"), c10::ValueError, "must have a chat template of the name 'tool_use'");
}

TEST(ChatTemplate, NamesWhatItDoesNotKnow) {
  const auto refuses = [](const std::string& source, const std::string& why) {
    EXPECT_ERROR(rendered(source), c10::ValueError, "[chat_template] line " + why);
  };
  refuses("\n{% include 'a' %}", "2: 'include' is a statement that posenc does not know: it has ");
  refuses("{% for a in x recursive %}{% endfor %}", "1: 'recursive' is where %} must be");
  refuses("{% break %}", "1: 'break' must be in a loop");
  refuses("{{ x | title }}", "1: the filter 'title' is not known to posenc");
  refuses("{{ x is lower }}", "1: the test 'lower' is not known to posenc");
  refuses("{{ x | trim(1, 2) }}", "1: trim must have at most 1 arguments. Got 2");
  refuses("{{ x | join(e='a') }}", "1: the argument 'e' of join is not known, or twice");
  refuses("{{ messages | selectattr('role', 'odd', 1) | first }}",
          "1: these arguments of odd are not known to posenc");
  refuses("{{ x.format(1) }}", "1: the attribute format of a str is not known to posenc");
  refuses("{{ messages.append(1) }}", "1: the attribute append of a list is not known to posenc");
  refuses("{{ x.__class__ }}", "1: the attribute __class__ must not be asked for");
  refuses("{{ x % 2 }}", "1: the operation % of str and int is not known to posenc");
  refuses("{{ x + 1 }}", "1: the operation + of str and int is not known to posenc");
  refuses("{{ (x | safe) + x }}", "1: the operation + of Markup and str is not known to posenc");
  refuses("{{ 1\n // 0 }}", "2: the divisor must not be 0");
  refuses("{{ 9223372036854775807 + 1 }}", "1: integers must be in 64 bits");
  refuses("{{ '\u00df' | upper }}", "1: the case of letters beyond ASCII is changed");
  refuses("{{ messages | map('upper') }}", "1: a generator is written as a text");
  refuses("{{ f(*x) }}", "1: '*' is where a value must be");
  refuses("{{ x", "1: a tag does not end");
  refuses("{# x", "1: a comment does not end");
  refuses("{{ 'x }}", "1: a string does not end");
  refuses("{{ '\\N{DASH}' }}", "1: a string must not have the escape \\N");
  refuses("{{ x $ }}", "1: a tag must not have '$'");
  refuses("{{ (x] }}", "1: ']' closes nothing");
  refuses("{% if x %}a", "1: the end of a tag or of the template is where endif must be");
  refuses("{% endif %}", "1: 'endif' is a statement that posenc does not know");
  refuses("{% for m in 3 %}{% endfor %}", "1: what is gone through must be a list or another");
  refuses("{% for a, b in [[1]] %}{% endfor %}", "1: there must be a value for each of 2 names");
  refuses("{{ nothing.role }}", "1: what has the attribute role must be defined. Got 'nothing'");
  refuses("{{ nothing['a'] }}", "1: what has items must be defined. Got 'nothing'");
  refuses("{{ nothing() }}", "1: what is called must be defined. Got 'nothing'");
  refuses("{% set x.y = 1 %}", "1: x must be a namespace, to set its y");
  refuses("\n{{ raise_exception('No ' ~ x) }}", "2: the template raises: No a");
  refuses("{{ strftime_now('%Q') }}", "1: strftime_now has the format '%Q'");
}

TEST(ChatTemplate, EndsWhateverATemplateSays) {
  const auto refuses = [](const std::string& source, const std::string& why) {
    EXPECT_ERROR(rendered(source), c10::ValueError, why);
  };
  refuses("{{ " + std::string(200, '(') + "x" + std::string(200, ')') + " }}",
          "statements and expressions must not be so deep");
  std::string longest = "{{ x";
  for (int i = 0; i < 2000; ++i) longest += ".x";
  refuses(longest + " }}", "a tag must not be so long");
  refuses("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "must not be so deep");
  refuses("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
          "the template makes too much, or does not end");
  refuses(
      "{% set n = namespace(t='aaaaaaaa') %}{% for a in range(60) %}{% set n.t = n.t + n.t %}"
      "{% endfor %}",
      "the template makes too much, or does not end");
  // Lists, texts and values that grow, whatever makes them.
  const std::string much = "the template makes too much, or does not end";
  const auto doubles = [&](const std::string& begin, const std::string& more) {
    refuses("{% set n = namespace(v=" + begin + ") %}{% for a in range(60) %}{% set n.v = " + more +
                " %}{% endfor %}{{ n.v }}",
            much);
  };
  doubles("[1]", "n.v + n.v");
  doubles("[1]", "[n.v, n.v]");
  doubles("{}", "{'a': n.v, 'b': n.v}");
  for (const char* end :
       {"'aaaa' * 1000000000", "range(99999) | join('a' * 9999999)",
        "('a' * 9999) | replace('a', 'a' * 99999)", "('\n' * 99999) | indent('a' * 9999)",
        "('a' * 9999999).split('a')", "('a' * 99999).join('a' * 99999)",
        "(range(99999) | list) | tojson(indent='a' * 9999)"})
    refuses(std::string("{{ ") + end + " }}", much);
  refuses("{% for a in range(99999) %}{% set b = range(99999) %}{% endfor %}", much);
  refuses("{% set t = 'a' * 999999 %}{% for a in range(99999) %}{% set b = 'b' in t %}{% endfor %}",
          much);
  // What is inside each other, for whatever goes through it.
  const auto deepens = [&](const std::string& begin, const std::string& more) {
    refuses("{% set n = namespace(v=" + begin +
                ") %}{% for a in range(99999) %}{% set n.v = " + more + " %}{% endfor %}",
            "values must not be so deep");
  };
  deepens("1", "[n.v]");
  deepens("1", "(n.v, 1)");
  deepens("1", "{'a': n.v}");
  deepens("{}", "{'a': n.v}.get");
  deepens("[1]", "n.v | select");
  deepens("[1]", "[n.v] | map('first')");
  refuses(
      "{% set n = namespace(v=1) %}{% for a in range(999) %}{% for b in [n.v] %}{% set n.v = loop "
      "%}"
      "{% endfor %}{% endfor %}",
      "values must not be so deep");
  refuses("{{ range(100001) }}", "a range must have at most 100000 numbers");
  EXPECT_EQ(rendered("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n is defined }}"), "True");
}

TEST(ChatTemplate, IsPrinted) {
  std::ostringstream text;
  text << ChatTemplate("{{ x }}");
  EXPECT_EQ(text.str(), "posenc::ChatTemplate(bytes=7)");
}

}  // namespace
}  // namespace posenc::testing
