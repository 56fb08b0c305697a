// is_test_true().

#include <map>

#include "base/text.h"
#include "text/chat_template/filters.h"

namespace posenc::text::jinja {
namespace {

using Value = TemplateValue;
using Test = bool (*)(const Value& value);
using OperandTest = bool (*)(const Value& value, const Value& operand);

bool is_bool(const Value& value) { return value.is<bool>(); }
bool is_integer(const Value& value) { return value.is<int64_t>(); }
bool is_float(const Value& value) { return value.is<double>(); }
bool is_text(const Value& value) { return value.is<std::string>() || value.is<Markup>(); }
bool is_mapping(const Value& value) { return value.object<Dict>() != nullptr; }
bool is_callable(const Value& value) {
  return value.is_undefined() || value.object<Function>() != nullptr;
}
bool is_stream(const Value& value) { return value.is<std::shared_ptr<Stream>>(); }

bool is_sequence(const Value& value) {
  const auto* const sequence = value.object<Sequence>();
  return value.is_undefined() || is_text(value) || is_mapping(value) ||
         (sequence != nullptr && sequence->kind != Sequence::Kind::View);
}
bool is_iterable(const Value& value) {
  return value.is_undefined() || is_text(value) || is_mapping(value) || is_stream(value) ||
         value.object<Sequence>() != nullptr || value.object<Loop>() != nullptr;
}

// True, False and None are one object each; of others it is not known.
bool is_same(const Value& value, const Value& other) {
  const auto is_one = [](const Value& one) { return one.is_none() || is_bool(one); };
  if (!is_one(value) && !is_one(other)) refuse("sameas must have true, false or none");
  return value.data.index() == other.data.index() && are_equal(value, other);
}

bool divides(const Value& value, const Value& by) {
  return are_equal(binary("%", value, by), {int64_t{0}});
}

const std::map<std::string, Test>& plain_tests() {
  static const std::map<std::string, Test> kTests = {
      {"defined", [](const Value& value) { return !value.is_undefined(); }},
      {"undefined", [](const Value& value) { return value.is_undefined(); }},
      {"none", [](const Value& value) { return value.is_none(); }},
      {"boolean", is_bool},
      {"true", [](const Value& value) { return is_bool(value) && is_true(value); }},
      {"false", [](const Value& value) { return is_bool(value) && !is_true(value); }},
      {"integer", is_integer},
      {"float", is_float},
      {"number", [](const Value& one) { return is_bool(one) || is_integer(one) || is_float(one); }},
      {"string", is_text},
      {"mapping", is_mapping},
      {"sequence", is_sequence},
      {"iterable", is_iterable},
      {"callable", is_callable},
      {"odd", [](const Value& value) { return !divides(value, {int64_t{2}}); }},
      {"even", [](const Value& value) { return divides(value, {int64_t{2}}); }}};
  return kTests;
}

const std::map<std::string, OperandTest>& operand_tests() {
  static const OperandTest kUnequal = [](const Value& a, const Value& b) {
    return !are_equal(a, b);
  };
  static const OperandTest kLessOrEqual = [](const Value& a, const Value& b) {
    return is_less(a, b) || are_equal(a, b);
  };
  static const OperandTest kGreater = [](const Value& a, const Value& b) { return is_less(b, a); };
  static const OperandTest kGreaterOrEqual = [](const Value& a, const Value& b) {
    return is_less(b, a) || are_equal(a, b);
  };
  static const std::map<std::string, OperandTest> kTests = {
      {"eq", are_equal},         {"equalto", are_equal}, {"==", are_equal},
      {"ne", kUnequal},          {"!=", kUnequal},       {"in", is_in},
      {"lt", is_less},           {"lessthan", is_less},  {"<", is_less},
      {"le", kLessOrEqual},      {"<=", kLessOrEqual},   {"gt", kGreater},
      {"greaterthan", kGreater}, {">", kGreater},        {"ge", kGreaterOrEqual},
      {">=", kGreaterOrEqual},   {"sameas", is_same},    {"divisibleby", divides}};
  return kTests;
}

}  // namespace

bool is_test_true(const std::string& name, const TemplateValue& value,
                  const TemplateArguments& arguments) {
  const auto plain = plain_tests().find(name);
  const auto with_operand = operand_tests().find(name);
  const bool is_plain = plain != plain_tests().end();
  if (!is_plain && with_operand == operand_tests().end())
    refuse("the test " + io::in_quotes(name) + " is not known to posenc");
  if (!arguments.named.empty() || arguments.values.size() != (is_plain ? 0 : 1))
    refuse("these arguments of " + name + " are not known to posenc");
  return is_plain ? plain->second(value) : with_operand->second(value, arguments.values[0]);
}

}  // namespace posenc::text::jinja
