#include "cli/modules/script.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <optional>

#include "cli/error.h"

namespace posenc::cli {
namespace {

// The submodule named by a prefix, or nullopt: a key prefix need not name a module.
std::optional<torch::jit::Module> part(torch::jit::Module module, const std::string& prefix) {
  for (std::size_t begin = 0; begin < prefix.size();) {
    const auto dot = prefix.find('.', begin);
    const auto name = prefix.substr(begin, dot - begin);
    if (dot == std::string::npos || !module.hasattr(name) || !module.attr(name).isModule()) {
      return std::nullopt;
    }
    module = module.attr(name).toModule();
    begin = dot + 1;
  }
  return module;
}

// A script's error is a trace of many lines; the last one says what happened.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return text;
  const auto newline = text.rfind('\n', end);
  const auto begin = newline == std::string::npos ? 0 : newline + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

struct Script::State {
  std::string prefix;
  std::optional<torch::jit::Module> module;

  torch::jit::Method method(const std::string& name) const {
    if (!module) fail("the prefix {} matches no part of the script", prefix);
    const auto found = module->find_method(name);
    if (!found) fail("the script has no method {}", name);
    return *found;
  }

  // All but the first one, "self".
  std::vector<ScriptArgument> arguments(const std::string& name) const {
    const auto schema = method(name).function().getSchema();
    std::vector<ScriptArgument> result;
    for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
      const auto& argument = schema.arguments()[i];
      result.push_back({argument.name(), !argument.default_value()});
    }
    return result;
  }
};

Script::Script(const std::string& path, const std::string& prefix)
    : state_(
          std::make_unique<State>(State{prefix, part(torch::jit::load(path, at::kCPU), prefix)})) {
  if (state_->module) state_->module->eval();
}

Script::~Script() = default;

std::string Script::class_name() const {
  if (!state_->module) return "";
  const auto name = state_->module->type()->name();
  return name ? name->name() : "";
}

bool Script::has_method(const std::string& name) const {
  return state_->module && state_->module->find_method(name);
}

std::string Script::signature(const std::string& method) const {
  std::vector<std::string> names;
  for (const auto& [name, required] : state_->arguments(method)) {
    if (required) names.push_back(name);
  }
  return fmt::format("{}({})", method, listed(names));
}

std::vector<ScriptArgument> Script::arguments(const std::string& method) const {
  return state_->arguments(method);
}

at::Tensor Script::call(const std::string& method, const std::vector<at::Tensor>& arguments,
                        const std::map<std::string, at::Tensor>& by_name) const {
  std::vector<c10::IValue> values(arguments.begin(), arguments.end());
  const torch::jit::Kwargs named(by_name.begin(), by_name.end());
  c10::IValue result;
  try {
    result = state_->method(method)(std::move(values), named);
  } catch (const CommandError&) {
    throw;
  } catch (const std::exception& error) {
    fail("the script failed: {}", last_line(message_of(error)));
  }
  if (!result.isTensor()) fail("the script returns {}, not a tensor", result.tagKind());
  return result.toTensor();
}

}  // namespace posenc::cli
