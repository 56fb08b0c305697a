#include "weights/load/load_plan.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "weights/load/key_map.h"

namespace posenc::io {
namespace {

// `error` with the names of the tensors that were `written` before it, and the `name` being
// written, if any.
WeightsError interrupted(const WeightsError& error, std::vector<std::string> written,
                         const std::string& name) {
  std::string text = error.reason() + "; " + std::to_string(written.size()) +
                     " tensors of the module had been written";
  if (!name.empty()) text += ", and maybe a part of " + in_quotes(name);
  text += lines_of(written, 4);
  return WeightsError(error.code(), text,
                      "load again from a whole file, or use LoadOptions().staged(true), which "
                      "reads everything before the module changes")
      .in_tensor(error.tensor())
      .in_file(error.file())
      .with_details(
          {.missing = {}, .unexpected = {}, .mismatched = {}, .written = std::move(written)});
}

// An error of LibTorch's, such as a lack of memory.
WeightsError not_copied(const std::exception& error) {
  const auto* const from_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
  return {WeightsErrorCode::Module,
          "cannot be copied into the module: " + text.substr(0, text.find('\n'))};
}

}  // namespace

LoadPlan::LoadPlan(const torch::nn::Module& module, const TensorSource& source,
                   const LoadOptions& options, const FormatNames& names)
    : source_(source, options), tied_(names.tied) {
  ModuleState state = module_state(module, tied_);
  set_targets(state);
  matches_.resize(targets_.size());
  for (auto& table : state.tables) tables_.emplace(table.name, table);
  non_persistent_ = std::move(state.non_persistent);
  mismatch_.allow_missing = options.allow_missing();
  mismatch_.allow_unexpected = options.allow_unexpected();
  mismatch_.is_of_folder = names.is_new;
  mismatch_.prefix = options.prefix();
  mismatch_.is_mapped = !options.key_map().empty();
  mismatch_.expected = targets_.size();

  match_names();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (matches_[i].source != kNone) check_pair(i, options.cast());
  }
  check_ties(options.prefix());
  list_missing(options, names.optional);
  if (!mismatch_.missing.empty() && !mismatch_.allow_missing) name_objects();
  if (mismatch_.is_error()) throw mismatch_.error(source.subject());
  for (const auto& match : matches_) {
    if (match.source != kNone) source_.check_values(match.source);
  }
  check_overlaps(options.prefix());
  if (mismatch_.is_error()) throw mismatch_.error(source.subject());
  report_.missing.insert(report_.missing.end(), mismatch_.missing.begin(), mismatch_.missing.end());
  report_.unexpected = mismatch_.unexpected;
  report_.unused_patterns = source_.unused_patterns();
}

void LoadPlan::set_targets(const ModuleState& state) {
  targets_ = targets_of(state);
  const bool has_memory = std::none_of(targets_.begin(), targets_.end(),
                                       [](const Target& one) { return one.tensor.is_meta(); });
  sharing_ = has_memory ? sharing_of(targets_) : Sharing(targets_.size());
}

void LoadPlan::match_names() {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < targets_.size(); ++i) index.emplace(targets_[i].name, i);
  const auto& entries = source_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& name = entries[i].name;
    const auto found = name ? index.find(*name) : index.end();
    if (found != index.end()) {
      Match& match = matches_[found->second];
      if (match.source == kNone) {
        match.source = i;
      } else {
        mismatch_.faults.push_back({WeightsErrorCode::DuplicateKey,
                                    source_.label(match.source) + " and " + source_.label(i) +
                                        " both become " + in_quotes(*name) + " in the module",
                                    ""});
      }
      continue;
    }
    const bool is_ignored = !name || non_persistent_.count(*name) != 0;
    for (const auto& part : entries[i].parts) {
      if (part.index == MappedSource::kAbsent || !source_.entry_of(part).is_tensor) continue;
      (is_ignored ? report_.ignored : mismatch_.unexpected).push_back(part.name);
    }
  }
  mismatch_.given = entries.size();
}

void LoadPlan::list_missing(const LoadOptions& options, const std::set<std::string>& optional) {
  for (const auto& target : targets_) {
    const std::string& name = target.name;
    if (matches_[target.first].source != kNone) {
      report_.loaded.push_back(name);
    } else if (optional.count(targets_[target.first].name) != 0 || is_batch_counter(target)) {
      report_.missing.push_back(name);
    } else {
      mismatch_.missing.push_back(name);
      auto names = names_in_file(name, options);
      if (!names.empty()) mismatch_.names_in_file.emplace(name, std::move(names));
    }
  }
}

// The counter of a BatchNorm whose statistics are there. PyTorch before 0.4.1 had none, and
// torch.nn keeps the module's where a state dict lacks it.
bool LoadPlan::is_batch_counter(const Target& target) const {
  constexpr std::string_view kCounter = "num_batches_tracked";
  const std::string& name = target.name;
  if (target.tensor.scalar_type() != at::kLong || target.tensor.dim() != 0) return false;
  const std::string layer = name.substr(0, name.size() - std::min(name.size(), kCounter.size()));
  if (name != layer + std::string(kCounter) || (!layer.empty() && layer.back() != '.'))
    return false;
  const auto is_given = [&](const std::string& expected) {
    const auto found = std::find_if(targets_.begin(), targets_.end(),
                                    [&](const Target& other) { return other.name == expected; });
    return found != targets_.end() && matches_[found->first].source != kNone;
  };
  return is_given(layer + "running_mean") && is_given(layer + "running_var");
}

// Whether it is in the module of a missing tensor, as the packed weights of a quantised layer are.
bool LoadPlan::is_beside_missing(const std::string& name) const {
  return std::any_of(mismatch_.missing.begin(), mismatch_.missing.end(), [&](const auto& missing) {
    const auto mapped = mismatch_.names_in_file.find(missing);
    const std::string own = mapped == mismatch_.names_in_file.end() ? mismatch_.prefix + missing
                                                                    : mapped->second.front();
    return name.starts_with(own.substr(0, own.rfind('.') + 1));
  });
}

// As in `torch.save({"model": model})`: the missing tensors may be inside such an object.
void LoadPlan::name_objects() {
  const std::string& prefix = mismatch_.prefix;
  for (const auto& entry : source_.source().entries()) {
    if (entry.is_unreadable && is_beside_missing(entry.name)) {
      mismatch_.objects.push_back(
          {WeightsErrorCode::Unsupported, in_quotes(entry.name) + " " + entry.fault, ""});
    }
    if (entry.remedy.empty()) continue;
    const std::string inside = entry.name + ".";
    if (entry.is_module) {
      fault(WeightsErrorCode::WholeModule, entry.name, entry.fault, entry.remedy);
    } else if (inside.starts_with(prefix) || prefix.starts_with(inside)) {
      mismatch_.objects.push_back(
          {WeightsErrorCode::WholeModule, in_quotes(entry.name) + " " + entry.fault, entry.remedy});
    }
  }
}

std::vector<std::string> LoadPlan::names_read() const {
  std::vector<std::string> names;
  for (const Match& match : matches_) {
    if (match.source == kNone) continue;
    for (const auto& part : source_.entries()[match.source].parts) names.push_back(part.name);
  }
  return names;
}

at::Tensor LoadPlan::value_of(std::size_t target) const {
  const Match& match = matches_[target];
  if (match.value.defined()) return match.value;
  return source_.tensor(match.source, targets_[target].tensor.scalar_type());
}

void LoadPlan::stage() {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].first == i && matches_[i].source != kNone) matches_[i].value = value_of(i);
  }
  source_.source().check_unchanged();
  is_staged_ = true;
}

void LoadPlan::write(std::size_t target) const {
  const Match& match = matches_[target];
  const at::Tensor& tensor = targets_[target].tensor;
  const SharedWrite write(targets_, sharing_[target]);
  if (match.value.defined()) {
    tensor.copy_(match.value);
  } else {
    source_.copy_to(match.source, tensor);
  }
}

void LoadPlan::apply_to(const torch::nn::Module& module) {
  set_targets(module_state(module, tied_));
  apply();
}

void LoadPlan::apply() const {
  const at::NoGradGuard no_grad;
  std::vector<std::string> written;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].first != i || matches_[i].source == kNone) continue;
    const std::string& name = targets_[i].name;
    try {
      write(i);
    } catch (const WeightsError& error) {
      throw interrupted(error, written, name);
    } catch (const std::exception& error) {
      throw interrupted(not_copied(error).in_tensor(name), written, name);
    }
    written.push_back(name);
  }
  if (is_staged_) return;
  try {
    source_.source().check_unchanged();
  } catch (const WeightsError& error) {
    throw interrupted(error, written, "");
  }
}

}  // namespace posenc::io
