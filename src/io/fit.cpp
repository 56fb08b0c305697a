#include "io/fit.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "io/read/quote.h"
#include "posenc/core/nearest.h"

namespace posenc::io {
namespace {

constexpr std::size_t kListed = 1000;  // names of one kind in a message
constexpr std::size_t kHinted = 20;    // of which so many with a guess at what was meant

// A tensor of the module and what the file has for it.
struct Target {
  std::string name;
  at::Tensor tensor;
  std::string source_name;
  at::Tensor source;  // undefined: not in the file
  std::size_t first;  // the first target that is the same memory; its own index for most
};

struct Fit {
  std::vector<Target> targets;
  LoadReport report;
  std::vector<std::string> problems;  // everything but missing and unexpected
};

// Registered twice, or a second handle on the same memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ||
         (a.numel() > 0 && a.is_alias_of(b) && a.const_data_ptr() == b.const_data_ptr() &&
          a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
          a.strides() == b.strides());
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (same_memory(a, b)) return true;
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  };
  const auto x = plain(a), y = plain(b);
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

std::vector<Target> targets_of(const torch::nn::Module& module) {
  std::vector<Target> targets;
  std::unordered_map<const void*, std::vector<std::size_t>> by_address;
  for (const auto& item : state_dict(module)) {
    const at::Tensor& tensor = item.value();
    const std::size_t index = targets.size();
    std::size_t first = index;
    const void* address = tensor.has_storage() && tensor.numel() > 0
                              ? tensor.const_data_ptr()
                              : static_cast<const void*>(tensor.unsafeGetTensorImpl());
    for (const std::size_t other : by_address[address]) {
      if (same_memory(targets[other].tensor, tensor)) {
        first = other;
        break;
      }
    }
    if (first == index) by_address[address].push_back(index);
    targets.push_back({item.key(), tensor, "", {}, first});
  }
  return targets;
}

std::string shape(const at::Tensor& tensor) {
  std::string text = "(";
  for (const int64_t dim : tensor.sizes()) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  }
  return text + ")";
}

// Whether `source` can be copied into the target, and the copy cannot fail half-way.
void check_pair(const Target& target, const at::Tensor& source,
                std::vector<std::string>& problems) {
  const auto must = [&](const std::string& rule, const std::string& got) {
    problems.push_back(in_quotes(target.name) + " must " + rule + ". Got " + got);
  };
  const at::Tensor& tensor = target.tensor;
  if (!source.defined()) return must("be a tensor", "an undefined one");
  if (source.layout() != at::kStrided || source.is_quantized() || source.is_nested() ||
      source.is_meta()) {
    return must("be dense and hold data", "a sparse, quantised, nested or meta tensor");
  }
  if (tensor.sizes() != source.sizes()) must("have shape " + shape(tensor), shape(source));
  if (tensor.scalar_type() != source.scalar_type()) {
    must(std::string("have dtype ") + c10::toString(tensor.scalar_type()),
         c10::toString(source.scalar_type()));
  }
  if (tensor.is_meta()) return must("have memory in the module", "a tensor on the meta device");
  if (tensor.is_inference() && !c10::InferenceMode::is_enabled()) {
    must("not be an inference tensor in the module", "one; load inside InferenceMode");
  }
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    must("have an element for each of its indices in the module", "an expanded tensor");
  }
}

// What would have to be stripped from the file's names so that every missing name is there.
std::string prefix_hint(const LoadReport& report) {
  if (report.missing.empty() || report.unexpected.empty()) return "";
  const std::string& wanted = report.missing.front();
  const std::set<std::string> names(report.unexpected.begin(), report.unexpected.end());
  std::size_t guesses = 0;
  for (const auto& name : report.unexpected) {
    if (name.size() <= wanted.size() || !name.ends_with("." + wanted)) continue;
    if (++guesses > kHinted) break;  // each guess costs a walk over all missing names
    const std::string prefix = name.substr(0, name.size() - wanted.size());
    if (std::all_of(report.missing.begin(), report.missing.end(),
                    [&](const auto& missing) { return names.count(prefix + missing) != 0; })) {
      return "\n  every missing name is there behind " + in_quotes(prefix) +
             ": pass LoadOptions().prefix(\"" + prefix + "\")";
    }
  }
  return "";
}

// Names of much the same length, or the same with something in front; others would be noise.
std::string hint(const std::string& name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 256;  // bounds the work on names from foreign files
  std::vector<std::string> plausible;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (longer <= kLongest && (longer - shorter <= longer / 3 || name.ends_with(candidate) ||
                               candidate.ends_with(name))) {
      plausible.push_back(candidate);
    }
  }
  const auto found = nearest(name, plausible, 1);
  return found.empty() ? "" : " (nearest: " + in_quotes(found.front()) + ")";
}

std::string listing(const std::string& title, const std::vector<std::string>& names,
                    const std::vector<std::string>& candidates) {
  if (names.empty()) return "";
  std::string text = "\n  " + title + " (" + std::to_string(names.size()) + "):";
  for (std::size_t i = 0; i < std::min(names.size(), kListed); ++i) {
    text += (i == 0 ? " " : ", ") + in_quotes(names[i]);
    if (i < kHinted && candidates.size() <= kListed) text += hint(names[i], candidates);
  }
  return text + (names.size() > kListed ? ", ..." : "");
}

std::string describe(const Fit& fit, bool missing, bool unexpected) {
  const LoadReport& report = fit.report;
  std::string text;
  if (missing) text += listing("missing", report.missing, report.unexpected);
  if (unexpected) text += listing("unexpected", report.unexpected, report.missing);
  for (std::size_t i = 0; i < std::min(fit.problems.size(), kListed); ++i) {
    text += "\n  " + fit.problems[i];
  }
  if (fit.problems.size() > kListed) text += "\n  ...";
  if (missing) text += prefix_hint(report);
  return text;
}

// Gives every target its source, and notes what has none.
void match(Fit& fit, const StateDict& tensors, const std::string& prefix) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < fit.targets.size(); ++i) index.emplace(fit.targets[i].name, i);
  bool any = false;
  for (const auto& item : tensors) {
    if (!item.key().starts_with(prefix)) continue;
    any = true;
    const auto found = index.find(item.key().substr(prefix.size()));
    if (found == index.end()) {
      fit.report.unexpected.push_back(item.key());
      continue;
    }
    fit.targets[found->second].source_name = item.key();
    fit.targets[found->second].source = item.value();
    check_pair(fit.targets[found->second], item.value(), fit.problems);
  }
  if (!any && !prefix.empty()) fit.problems.push_back("no name begins with " + in_quotes(prefix));

  // Tied targets share the first one's source, whichever of their names the file has.
  for (const auto& target : fit.targets) {
    Target& first = fit.targets[target.first];
    if (target.source_name.empty() || &target == &first) continue;
    if (first.source_name.empty()) {
      first.source_name = target.source_name;
      first.source = target.source;
    } else if (fit.problems.empty() && !same_bytes(first.source, target.source)) {
      fit.problems.push_back(in_quotes(first.source_name) + " and " +
                             in_quotes(target.source_name) +
                             " are one tensor in the module, but differ");
    }
  }
  for (const auto& target : fit.targets) {
    const bool found = !fit.targets[target.first].source_name.empty();
    (found ? fit.report.loaded : fit.report.missing).push_back(target.name);
  }
}

void copy(std::vector<Target>& targets) {
  const at::NoGradGuard no_grad;
  // A source that lies in the module's own memory could be overwritten before it is read.
  std::set<const void*> storages;
  for (const auto& target : targets) {
    if (target.tensor.has_storage()) {
      storages.insert(target.tensor.storage().unsafeGetStorageImpl());
    }
  }
  for (auto& target : targets) {
    if (target.source.defined() &&
        storages.count(target.source.storage().unsafeGetStorageImpl()) != 0) {
      target.source = target.source.clone();
    }
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].first == i && targets[i].source.defined()) {
      targets[i].tensor.copy_(targets[i].source);
    }
  }
}

}  // namespace

LoadReport load_fitting(torch::nn::Module& module, const StateDict& tensors,
                        const LoadOptions& options, const std::string& subject,
                        const std::set<std::string>& optional) {
  Fit fit;
  fit.targets = targets_of(module);
  match(fit, tensors, options.prefix());

  const LoadReport& report = fit.report;
  const bool missing = !options.allow_missing() && !report.missing.empty();
  const bool unexpected = !options.allow_unexpected() &&
                          std::any_of(report.unexpected.begin(), report.unexpected.end(),
                                      [&](const auto& name) { return optional.count(name) == 0; });
  TORCH_CHECK_VALUE(
      !missing && !unexpected && fit.problems.empty(), subject,
      " does not fit the module, which is left as it was:", describe(fit, missing, unexpected));
  copy(fit.targets);
  return std::move(fit.report);
}

}  // namespace posenc::io
