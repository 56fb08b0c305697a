#include "parity/program/script.h"

#include <torch/csrc/jit/serialization/import.h>

#include "parity/program/counterpart.h"

namespace posenc::parity {

Script::Script(const std::string& path, const std::string& prefix)
    : module_(torch::jit::load(path, at::kCPU)) {
  for (std::size_t begin = 0; begin < prefix.size();) {
    const auto dot = prefix.find('.', begin);
    const auto name = prefix.substr(begin, dot - begin);
    if (dot == std::string::npos || !module_.hasattr(name) || !module_.attr(name).isModule()) {
      fail("the prefix {} matches no part of the script", prefix);
    }
    module_ = module_.attr(name).toModule();
    begin = dot + 1;
  }
  module_.eval();
}

std::string Script::class_name() const { return module_.type()->name()->name(); }

bool Script::has_method(const std::string& name) const {
  return module_.find_method(name).has_value();
}

torch::jit::Method Script::method(const std::string& name) const {
  const auto found = module_.find_method(name);
  if (!found) fail("the script has no method {}", name);
  return *found;
}

std::vector<Script::Argument> Script::arguments(const std::string& name) const {
  const auto schema = method(name).function().getSchema();
  std::vector<Argument> result;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // the first one is "self"
    const auto& argument = schema.arguments()[i];
    result.push_back({argument.name(), !argument.default_value()});
  }
  return result;
}

std::string Script::signature(const std::string& method) const {
  std::vector<std::string> names;
  for (const auto& [name, required] : arguments(method)) {
    if (required) names.push_back(name);
  }
  return fmt::format("{}({})", method, listed(names));
}

at::Tensor Script::call(const std::string& name, const std::vector<at::Tensor>& arguments,
                        const std::map<std::string, at::Tensor>& by_name) const {
  auto called = method(name);
  c10::IValue result;
  try {
    result = called(std::vector<c10::IValue>(arguments.begin(), arguments.end()),
                    torch::jit::Kwargs(by_name.begin(), by_name.end()));
  } catch (const std::exception& error) {  // a trace of many lines; the last says what happened
    const std::string text = message_of(error);
    fail("the script failed: {}", text.substr(text.rfind('\n') + 1));
  }
  if (!result.isTensor()) fail("the script returns {}, not a tensor", result.tagKind());
  return result.toTensor();
}

}  // namespace posenc::parity
