#include "io/load/load_plan.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "io/base/dtype.h"
#include "io/base/quote.h"
#include "io/load/key_map.h"
#include "io/load/table_check.h"

namespace posenc::io {
namespace {

std::string shape(at::IntArrayRef sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

std::string short_number(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

// `error` with the names of the tensors that were `written` before it, and the `name` being
// written.
WeightsError interrupted(const WeightsError& error, const std::vector<std::string>& written,
                         const std::string& name) {
  constexpr std::size_t kListed = 1000;
  std::string text = error.reason() + "; of the module " + std::to_string(written.size()) +
                     " tensors had been written";
  for (std::size_t i = 0; i < std::min(written.size(), kListed); ++i) {
    text += (i == 0 ? ": " : ", ") + in_quotes(written[i]);
  }
  if (written.size() > kListed) text += ", ...";
  text += ", and maybe a part of " + in_quotes(name);
  return WeightsError(error.code(), text,
                      "load again from a whole file, or use LoadOptions().staged(true), which "
                      "reads everything before the module changes")
      .in_tensor(error.tensor())
      .in_file(error.file());
}

}  // namespace

LoadPlan::LoadPlan(const torch::nn::Module& module, const TensorSource& source,
                   const LoadOptions& options)
    : source_(source) {
  check_key_map(options.key_map());
  ModuleState state = module_state(module);
  targets_ = targets_of(state.tensors);
  matches_.resize(targets_.size());
  for (auto& table : state.tables) tables_.emplace(table.name, table);
  non_persistent_ = std::move(state.non_persistent);
  mismatch_.allow_missing = options.allow_missing();
  mismatch_.allow_unexpected = options.allow_unexpected();

  match_names(options);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (matches_[i].source != kNone) check_pair(i, options.cast());
  }
  check_ties(options.prefix(), options.cast());
  for (const auto& target : targets_) {
    const bool found = matches_[target.first].source != kNone;
    (found ? report_.loaded : mismatch_.missing).push_back(target.name);
  }
  if (!mismatch_.missing.empty() && !mismatch_.allow_missing) name_whole_modules();
  if (mismatch_.is_error()) throw mismatch_.error(source.subject());
  for (const auto& match : matches_) {
    if (match.source != kNone) source.check_values(match.source);
  }
  report_.missing = mismatch_.missing;
  report_.unexpected = mismatch_.unexpected;
}

void LoadPlan::fault(WeightsErrorCode code, const std::string& name, const std::string& text,
                     const std::string& remedy) {
  mismatch_.faults.push_back({code, in_quotes(name) + " " + text, remedy});
}

void LoadPlan::match_names(const LoadOptions& options) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < targets_.size(); ++i) index.emplace(targets_[i].name, i);
  const auto& entries = source_.entries();
  bool any = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, dtype, sizes, problem, is_tensor, is_module] = entries[i];
    if (!name.starts_with(options.prefix())) continue;
    any = true;
    const auto mapped = mapped_name(name, options);
    const auto found = mapped ? index.find(*mapped) : index.end();
    if (found != index.end()) {
      Match& match = matches_[found->second];
      if (match.source == kNone) {
        match.source = i;
      } else {
        fault(WeightsErrorCode::DuplicateKey, entries[match.source].name,
              "and " + in_quotes(name) + " both become " + in_quotes(*mapped) + " in the module");
      }
    } else if (is_tensor && (!mapped || non_persistent_.count(*mapped) != 0)) {
      report_.ignored.push_back(name);
    } else if (is_tensor) {
      mismatch_.unexpected.push_back(name);
    }
  }
  if (!any && !options.prefix().empty() && !targets_.empty()) {
    mismatch_.faults.push_back({WeightsErrorCode::MissingKeys,
                                "no name begins with " + in_quotes(options.prefix()),
                                "a prefix is given with its dot"});
  }
}

// As in `torch.save({"model": model})`: what is missing may be inside.
void LoadPlan::name_whole_modules() {
  for (const auto& entry : source_.entries()) {
    if (!entry.is_module) continue;
    fault(WeightsErrorCode::WholeModule, entry.name, entry.fault,
          "save model.state_dict() in place of the model");
  }
}

// Checks that the source can be copied, and that the copy cannot fail half-way.
void LoadPlan::check_pair(std::size_t target, bool cast) {
  const auto& entry = source_.entries()[matches_[target].source];
  if (!entry.fault.empty()) {
    return fault(WeightsErrorCode::Unsupported, targets_[target].name, entry.fault);
  }
  const bool fits = check_dtype(targets_[target], entry.dtype, cast);
  check_shape(target, check_memory(targets_[target]) && fits);
}

bool LoadPlan::check_memory(const Target& target) {
  const at::Tensor& tensor = target.tensor;
  std::string text;
  if (!is_plain(tensor)) {
    text = "must be dense and have memory in the module. Got a " +
           std::string(tensor.is_meta() ? "tensor on the meta device"
                                        : "sparse, quantised or nested tensor");
  } else if (tensor.is_inference() && !c10::InferenceMode::is_enabled()) {
    text = "must not be an inference tensor in the module. Got one; load inside InferenceMode";
  } else if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    text = "must have an element for each of its indices in the module. Got an expanded tensor";
  }
  if (!text.empty()) fault(WeightsErrorCode::Module, target.name, text);
  return text.empty();
}

bool LoadPlan::check_dtype(const Target& target, at::ScalarType type, bool cast) {
  const at::ScalarType wanted = target.tensor.scalar_type();
  if (type == wanted) return true;
  const bool castable = can_cast(type, wanted);
  if (castable && cast) {
    report_.cast.push_back(target.name);
    return true;
  }
  fault(WeightsErrorCode::DtypeMismatch, target.name,
        "must have dtype " + type_name(wanted) + ". Got " + type_name(type),
        castable ? "LoadOptions().cast(true) converts dtypes" : "");
  return false;
}

void LoadPlan::check_shape(std::size_t target, bool may_read) {
  const auto& [name, tensor, first] = targets_[target];
  Match& match = matches_[target];
  const auto& sizes = source_.entries()[match.source].sizes;
  const bool same = tensor.sizes() == at::IntArrayRef(sizes);
  std::string text = "must have shape " + shape(tensor.sizes()) + ". Got " + shape(sizes);

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

// Whether two entries of the same sizes give the module the same bytes.
bool LoadPlan::same_values(std::size_t a, std::size_t b, at::ScalarType type) const {
  if (source_.entries()[a].dtype == source_.entries()[b].dtype) return source_.equal(a, b);
  const auto value = [&](std::size_t index) {
    return source_.tensor(index).cpu().to(type).resolve_conj().resolve_neg().contiguous();
  };
  const at::Tensor x = value(a), y = value(b);
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

// The names of one tensor share the first one's source, whichever of them the file has.
void LoadPlan::check_ties(const std::string& prefix, bool cast) {
  const auto& entries = source_.entries();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const std::size_t first = targets_[i].first;
    const std::size_t source = matches_[i].source;
    if (source == kNone || first == i) continue;
    Match& kept = matches_[first];
    if (kept.source == kNone) {
      kept = matches_[i];
      continue;
    }
    const auto& a = entries[kept.source];
    const auto& b = entries[source];
    const auto castable = [&](const auto& entry) {
      return entry.dtype == targets_[i].tensor.scalar_type() ||
             (cast && can_cast(entry.dtype, targets_[i].tensor.scalar_type()));
    };
    const bool comparable = a.fault.empty() && b.fault.empty() && a.sizes == b.sizes &&
                            (a.dtype == b.dtype || (castable(a) && castable(b)));
    if (comparable && !same_values(kept.source, source, targets_[i].tensor.scalar_type())) {
      fault(WeightsErrorCode::TieConflict, a.name,
            "and " + in_quotes(b.name) + " are one tensor in the module, but differ",
            "say which wins by leaving the other out: LoadOptions().key_map({{\"" +
                b.name.substr(prefix.size()) + "\", \"\"}}) keeps the first");
    }
  }
}

void LoadPlan::stage() {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    Match& match = matches_[i];
    if (targets_[i].first != i || match.source == kNone || match.value.defined()) continue;
    match.value = source_.tensor(match.source);
  }
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
}

}  // namespace posenc::io
