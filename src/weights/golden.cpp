#include "posenc/weights/golden.h"

#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "weights/common/file.h"
#include "weights/common/module_state.h"
#include "weights/common/tensor.h"
#include "weights/golden_comparisons.h"
#include "weights/load/load_plan.h"
#include "weights/load/mapped_source.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

constexpr std::size_t kMostLines = 20;

WeightsError corrupt(const std::string& reason) { return {WeightsErrorCode::Corrupt, reason}; }

std::string value_of(const std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

void check_metadata(const std::map<std::string, std::string>& metadata) {
  const std::string version = value_of(metadata, "golden");
  if (version == "1") return;
  const char* const remedy = "save_golden() in docs/parity.md writes golden files";
  if (version.empty()) {
    throw WeightsError(WeightsErrorCode::UnknownFormat,
                       "must be a golden file. Got one whose metadata has no `golden`", remedy);
  }
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "must be a golden file of version 1. Got " + io::in_quotes(version), remedy);
}

// The tensors in the order of the names in the metadata, a line each: a file has them in its own.
StateDict in_order(const StateDict& tensors, const std::string& prefix,
                   const std::map<std::string, std::string>& metadata, const std::string& key) {
  StateDict result;
  std::istringstream lines(value_of(metadata, key));
  for (std::string name; std::getline(lines, name);) {
    const at::Tensor* const tensor = tensors.find(name);
    if (tensor == nullptr || result.contains(name)) {
      throw corrupt("must have the tensor " + io::in_quotes(prefix + name) +
                    ", which its metadata names, once");
    }
    result.insert(name, at::Tensor(*tensor));
  }
  for (const auto& item : tensors) {
    if (!result.contains(item.key())) {
      throw corrupt("must name the tensor in its metadata").in_tensor(prefix + item.key());
    }
  }
  return result;
}

// Gradients have the names, shapes and dtypes of what they are the gradients of.
void check_gradients(const StateDict& gradients, const std::string& prefix, const StateDict& of,
                     const std::string& prefix_of) {
  for (const auto& item : gradients) {
    const at::Tensor* const tensor = of.find(item.key());
    if (tensor == nullptr || tensor->sizes() != item.value().sizes() ||
        tensor->scalar_type() != item.value().scalar_type() ||
        !(tensor->is_floating_point() || tensor->is_complex())) {
      throw corrupt("must be a gradient of " + io::in_quotes(prefix_of + item.key()) +
                    ", of its shape and its floating-point dtype")
          .in_tensor(prefix + item.key());
    }
  }
}

std::string names_of(const StateDict& tensors) { return io::in_quotes_each(tensors.keys()); }

TensorComparison other(const std::string& mismatch) {
  TensorComparison result;
  result.ok = false;
  result.mismatch = mismatch;
  return result;
}

}  // namespace

bool GoldenReport::ok() const {
  return std::all_of(items.begin(), items.end(),
                     [](const Item& item) { return item.comparison.ok; });
}

std::string GoldenReport::to_string() const {
  const auto differ = static_cast<std::size_t>(std::count_if(
      items.begin(), items.end(), [](const Item& item) { return !item.comparison.ok; }));
  std::string text = "[Golden] " + subject + ": ";
  text += differ == 0 ? "all agree" : fmt::format("{} of {} differ", differ, items.size());
  const std::size_t listed = differ == 0 ? items.size() : differ;  // those that differ come first
  for (std::size_t i = 0; i < std::min(listed, kMostLines); ++i) {
    text += "\n  " + items[i].name + ": ";
    for (const char letter : items[i].comparison.to_string()) {
      text += letter == '\n' ? "\n    " : std::string(1, letter);
    }
  }
  if (listed > kMostLines) text += fmt::format("\n  and {} more", listed - kMostLines);
  return text;
}

std::ostream& operator<<(std::ostream& out, const GoldenReport& report) {
  return out << report.to_string();
}

Golden::Golden(const std::string& path)
    : Golden(path, io::in_context("Golden", path, [&] {
               try {
                 return load_safetensors(path);
               } catch (const WeightsError& error) {  // without the name of that function
                 throw WeightsError(error.code(), error.reason(), error.remedy())
                     .in_tensor(error.tensor());
               }
             })) {}

Golden::Golden(std::string name, const SafetensorsFile& file)
    : name_(std::move(name)), metadata_(file.metadata) {
  io::in_context("Golden", name_, [&] {
    check_metadata(metadata_);
    const std::pair<const char*, StateDict*> groups[] = {
        {"param.", &parameters_},     {"in.", &inputs_},
        {"out.", &outputs_},          {"cotangent.", &cotangents_},
        {"grad.param.", &gradients_}, {"grad.in.", &input_gradients_}};
    for (const auto& item : file.tensors) {
      const std::string_view full = item.key();
      const auto* const group =
          std::find_if(std::begin(groups), std::end(groups),
                       [&](const auto& each) { return full.starts_with(each.first); });
      if (group == std::end(groups)) {
        throw corrupt("must begin with param., in., out., cotangent. or grad.")
            .in_tensor(item.key());
      }
      group->second->insert(item.key().substr(std::string_view(group->first).size()),
                            at::Tensor(item.value()));
    }
    inputs_ = in_order(inputs_, "in.", metadata_, "inputs");
    outputs_ = in_order(outputs_, "out.", metadata_, "outputs");
    if (outputs_.is_empty()) throw corrupt("must have outputs. Got no tensor named out.");
    check_gradients(cotangents_, "cotangent.", outputs_, "out.");
    check_gradients(gradients_, "grad.param.", parameters_, "param.");
    check_gradients(input_gradients_, "grad.in.", inputs_, "in.");
    for (auto& item : inputs_) {
      item.value() = item.value().clone().requires_grad_(input_gradients_.contains(item.key()));
    }
  });
}

LoadReport Golden::load_into(const ModuleRef& module, const LoadOptions& options) {
  return io::in_context("Golden::load_into", name_, [&] {
    const io::MemorySource source(parameters_, *module);
    const io::LoadPlan plan(*module, source, options);
    plan.apply();
    options_ = options;
    return plan.report();
  });
}

const at::Tensor& Golden::input(const std::string& name) const {
  const at::Tensor* const found = inputs_.find(name);
  TORCH_CHECK_VALUE(found != nullptr, "[Golden] ", name_, ": input must be one of ",
                    names_of(inputs_), ". Got ", io::in_quotes(name));
  return *found;
}

std::vector<at::Tensor> Golden::matched(const GoldenOutputs& outputs) const {
  const auto& given = outputs.tensors();
  TORCH_CHECK_VALUE(given.size() == outputs_.size(), "[Golden] ", name_, ": must be compared with ",
                    outputs_.size(), " outputs, ", names_of(outputs_), ". Got ", given.size());
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::string& name = outputs_[i].key();
    const auto named = std::find_if(given.begin(), given.end(),
                                    [&](const auto& each) { return each.first == name; });
    TORCH_CHECK_VALUE(named != given.end() || given[i].first.empty(), "[Golden] ", name_,
                      ": outputs must be ", names_of(outputs_), ". Got ",
                      io::in_quotes(given[i].first));
    result.push_back(named == given.end() ? given[i].second : named->second);
  }
  return result;
}

GoldenReport Golden::report(std::vector<GoldenReport::Item> items) const {
  GoldenReport result;
  result.items = std::move(items);
  result.subject =
      fmt::format("{} ({}, torch {})", name_, io::printable(value_of(metadata_, "module")),
                  io::printable(value_of(metadata_, "torch")));
  return result;
}

GoldenReport Golden::compare(const GoldenOutputs& outputs, const Tolerance& tolerance) const {
  const auto own = matched(outputs);
  io::GoldenComparisons found;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const at::Tensor& expected = outputs_[i].value();
    found.add("output " + io::in_quotes(outputs_[i].key()),
              compare_tensors(own[i], expected, tolerance), expected);
  }
  return report(found.sorted());
}

GoldenReport Golden::compare_gradients(const ModuleRef& module, const GoldenOutputs& outputs,
                                       const Tolerance& tolerance) const {
  if (cotangents_.is_empty()) {
    throw WeightsError(
        WeightsErrorCode::MissingKeys,
        "must have gradients. Got no cotangent: Python's outputs required no gradients")
        .in_file(name_)
        .in_function("Golden::compare_gradients");
  }
  const auto own = matched(outputs);
  io::GoldenComparisons found;
  std::vector<at::Tensor> roots, cotangents;
  bool is_comparable = true;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::string& name = outputs_[i].key();
    const at::Tensor* const cotangent = cotangents_.find(name);
    if (cotangent == nullptr) continue;
    const auto comparison = compare_tensors(own[i], outputs_[i].value());
    if (!comparison.mismatch.empty()) {
      found.add("output " + io::in_quotes(name), comparison);
      is_comparable = false;
      continue;
    }
    TORCH_CHECK_VALUE(own[i].requires_grad(), "[Golden] ", name_, ": output ", io::in_quotes(name),
                      " must require gradients. Got one that does not, as under NoGradGuard or "
                      "of a module whose parameters are frozen");
    roots.push_back(own[i]);
    cotangents.push_back(cotangent->to(own[i].device()));
  }
  if (!is_comparable) return report(found.sorted());

  module->zero_grad();
  for (const auto& item : inputs_) {
    if (item.value().grad().defined()) item.value().grad().zero_();
  }
  torch::autograd::backward(roots, cotangents, /*retain_graph=*/true);

  // The key map that made parameters of the file's weights also makes their gradients.
  const io::MemorySource source(gradients_, *module);
  const io::MappedSource mapped(source, options_);
  const StateDict state = io::module_state(*module).tensors;
  std::vector<at::Tensor> compared;
  for (std::size_t i = 0; i < mapped.entries().size(); ++i) {
    const auto& entry = mapped.entries()[i];
    if (!entry.name) continue;
    const std::string name = "gradient of " + io::in_quotes(*entry.name);
    const at::Tensor* const parameter = state.find(*entry.name);
    if (parameter == nullptr) {
      if (options_.allow_unexpected()) continue;
      found.add(name, other("the module has no such parameter"));
      continue;
    }
    compared.push_back(*parameter);
    const auto faults = mapped.faults(i, *entry.name, parameter->sizes());
    if (!faults.empty()) {
      found.add(name, other(faults.front().text));
    } else if (!parameter->grad().defined()) {
      found.add(name, other("the module has none, and Python has one"));
    } else {
      const auto type = mapped.entry_of(entry.parts.front()).dtype;
      const at::Tensor expected = mapped.tensor(i, type);
      found.add(name, compare_tensors(parameter->grad(), expected, tolerance), expected);
    }
  }
  for (const auto& item : module->named_parameters()) {
    const bool is_compared = std::any_of(compared.begin(), compared.end(), [&](const auto& each) {
      return io::same_memory(each, item.value());
    });
    if (is_compared || !item.value().grad().defined() || options_.allow_missing()) continue;
    found.add("gradient of " + io::in_quotes(item.key()),
              other("the module has one, and Python has none"));
  }
  for (const auto& item : input_gradients_) {
    found.add("gradient of input " + io::in_quotes(item.key()),
              compare_tensors(inputs_[item.key()].grad(), item.value(), tolerance), item.value());
  }
  return report(found.sorted());
}

}  // namespace posenc
