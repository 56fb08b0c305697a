#include "io/load/load_plan.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "io/base/dtype.h"
#include "io/base/quote.h"
#include "io/load/key_map.h"
#include "io/load/shape_text.h"
#include "io/load/table_check.h"

namespace posenc::io {
namespace {

std::string short_number(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

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

}  // namespace

LoadPlan::LoadPlan(const torch::nn::Module& module, const TensorSource& source,
                   const LoadOptions& options, const FormatNames& names)
    : source_(source, options) {
  ModuleState state = module_state(module, names.tied);
  targets_ = targets_of(state);
  matches_.resize(targets_.size());
  for (auto& table : state.tables) tables_.emplace(table.name, table);
  non_persistent_ = std::move(state.non_persistent);
  mismatch_.allow_missing = options.allow_missing();
  mismatch_.allow_unexpected = options.allow_unexpected();
  mismatch_.prefix = options.prefix();
  mismatch_.is_mapped = !options.key_map().empty();
  mismatch_.wanted = targets_.size();

  match_names();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (matches_[i].source != kNone) check_pair(i, options.cast());
  }
  check_ties(options.prefix());
  list_missing(options, names.optional);
  if (!mismatch_.missing.empty() && !mismatch_.allow_missing) name_whole_modules();
  if (mismatch_.is_error()) throw mismatch_.error(source.subject());
  for (const auto& match : matches_) {
    if (match.source != kNone) source_.check_values(match.source);
  }
  report_.missing.insert(report_.missing.end(), mismatch_.missing.begin(), mismatch_.missing.end());
  report_.unexpected = mismatch_.unexpected;
}

void LoadPlan::fault(WeightsErrorCode code, const std::string& name, const std::string& text,
                     const std::string& remedy) {
  mismatch_.faults.push_back({code, in_quotes(name) + " " + text, remedy});
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
    } else if (optional.count(targets_[target.first].name) != 0) {
      report_.missing.push_back(name);
    } else {
      mismatch_.missing.push_back(name);
      auto names = names_in_file(name, options);
      if (!names.empty()) mismatch_.names_in_file.emplace(name, std::move(names));
    }
  }
}

// As in `torch.save({"model": model})`: the missing tensors may be inside such an object.
void LoadPlan::name_whole_modules() {
  for (const auto& entry : source_.source().entries()) {
    if (!entry.is_module) continue;
    fault(WeightsErrorCode::WholeModule, entry.name, entry.fault,
          "save model.state_dict() in place of the model");
  }
}

// Checks that the source can be copied, and that the copy cannot fail half-way.
void LoadPlan::check_pair(std::size_t target, bool cast) {
  const Target& to = targets_[target];
  auto faults = source_.faults(matches_[target].source, to.name, to.tensor.sizes());
  if (!faults.empty()) {
    mismatch_.faults.insert(mismatch_.faults.end(), faults.begin(), faults.end());
    return;
  }
  const bool fits = check_dtype(target, cast);
  check_shape(target, check_memory(to) && fits);
}

bool LoadPlan::check_memory(const Target& target) {
  const at::Tensor& tensor = target.tensor;
  std::string text;
  if (!is_dense_with_data(tensor)) {
    text = "must be dense and have memory in the module. Got a " +
           std::string(tensor.is_meta() ? "tensor on the meta device"
                                        : "sparse, quantised or nested tensor");
  } else if (tensor.is_inference() && !c10::InferenceMode::is_enabled()) {
    text = "must not be an inference tensor in the module; load inside InferenceMode";
  } else if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    text = "must have an element for each of its indices in the module. Got an expanded tensor";
  }
  if (!text.empty()) fault(WeightsErrorCode::Module, target.name, text);
  return text.empty();
}

bool LoadPlan::check_dtype(std::size_t target, bool cast) {
  const std::string& name = targets_[target].name;
  const at::ScalarType wanted = targets_[target].tensor.scalar_type();
  const auto& parts = source_.entries()[matches_[target].source].parts;
  bool is_cast = false, fits = true;
  for (const auto& part : parts) {
    const at::ScalarType type = source_.entry_of(part).dtype;
    if (type == wanted) continue;
    const bool castable = can_cast(type, wanted);
    is_cast = true;
    if (castable && cast) continue;
    fits = false;
    fault(WeightsErrorCode::DtypeMismatch, parts.size() > 1 ? part.name : name,
          "must have dtype " + type_name(wanted) + ". Got " + type_name(type),
          castable ? "LoadOptions().cast(true) converts dtypes" : "");
  }
  if (is_cast && fits) report_.cast.push_back(name);
  return fits;
}

void LoadPlan::check_shape(std::size_t target, bool may_read) {
  const std::string& name = targets_[target].name;
  const at::Tensor& tensor = targets_[target].tensor;
  Match& match = matches_[target];
  const auto& entry = source_.entries()[match.source];
  const auto& sizes = entry.sizes;
  const bool same = tensor.sizes() == at::IntArrayRef(sizes);
  std::string text = "must have shape " + shape_text(tensor.sizes()) + ". Got " + shape_text(sizes);
  if (entry.parts.size() > 1) text += " from " + source_.label(match.source);

  const auto table = tables_.find(name);
  if (table != tables_.end() && may_read && same_but_rows(table->second, tensor.sizes(), sizes)) {
    const TableCheck check = check_table(table->second, tensor, source_, match.source);
    if (same || (check.value.defined() && check.report.as_computed)) {
      match.value = check.value;
      report_.tables.push_back(check.report);
      return;
    }
    text += ", a table whose common rows differ from the module's recipe by up to " +
            short_number(check.report.max_abs);
  }
  if (!same) fault(WeightsErrorCode::ShapeMismatch, name, text);
}

// The names of one tensor share the first one's source, whichever of them the file has.
void LoadPlan::check_ties(const std::string& prefix) {
  const auto& entries = source_.entries();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    const std::string& name = target.name;
    const std::size_t source = matches_[i].source;
    if (source == kNone || target.first == i) continue;
    Match& kept = matches_[target.first];
    if (kept.source == kNone) {
      kept = matches_[i];
      continue;
    }
    const auto type = target.tensor.scalar_type();
    const auto is_readable = [&](std::size_t index) {
      const auto& parts = entries[index].parts;
      return source_.faults(index, name, target.tensor.sizes()).empty() &&
             std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
               const auto from = source_.entry_of(part).dtype;
               return from == type || can_cast(from, type);
             });
    };
    const bool comparable = is_readable(kept.source) && is_readable(source) &&
                            entries[kept.source].sizes == entries[source].sizes;
    if (!comparable || source_.equal(kept.source, source, type)) continue;
    std::string rules;
    for (const auto& part : entries[source].parts) {
      rules += (rules.empty() ? "{\"" : ", {\"") + part.name.substr(prefix.size()) + "\", \"\"}";
    }
    mismatch_.faults.push_back({WeightsErrorCode::TieConflict,
                                source_.label(kept.source) + " and " + source_.label(source) +
                                    " are one tensor in the module, but differ",
                                "choose one by dropping the other: LoadOptions().key_map({" +
                                    rules + "}) keeps the first"});
  }
}

void LoadPlan::stage() {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    Match& match = matches_[i];
    const Target& target = targets_[i];
    if (target.first != i || match.source == kNone || match.value.defined()) continue;
    match.value = source_.tensor(match.source, target.tensor.scalar_type());
  }
  source_.source().check_unchanged();
  is_staged_ = true;
}

void LoadPlan::apply() const {
  const at::NoGradGuard no_grad;
  std::vector<std::string> written;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Match& match = matches_[i];
    if (targets_[i].first != i || match.source == kNone) continue;
    if (match.value.defined()) {
      targets_[i].tensor.copy_(match.value);
    } else {
      try {
        source_.copy_to(match.source, targets_[i].tensor);
      } catch (const WeightsError& error) {
        throw interrupted(error, written, targets_[i].name);
      }
    }
    written.push_back(targets_[i].name);
  }
  if (is_staged_) return;
  try {
    source_.source().check_unchanged();
  } catch (const WeightsError& error) {
    throw interrupted(error, written, "");
  }
}

}  // namespace posenc::io
