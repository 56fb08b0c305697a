// What a LoadPlan checks of the tensors whose names it has matched.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "core/floating_point.h"
#include "weights/common/tensor.h"
#include "weights/load/load_plan.h"
#include "weights/load/mismatch.h"

namespace posenc::io {
namespace {

std::string short_number(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

double largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

// Whether two tensors of these sizes are the same table, except for its number of rows.
bool same_but_rows(const ComputedTable& table, at::IntArrayRef module, at::IntArrayRef file) {
  if (module.size() != file.size()) return false;
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (static_cast<int64_t>(i) != table.row_axis && module[i] != file[i]) return false;
  }
  return true;
}

// A computed table of the module, compared with the file's.
struct TableCheck {
  TableReport report;
  // The rows to load into the module: the file's rows, followed by the recipe's if the file has
  // fewer. Undefined if the module cannot compute the table.
  at::Tensor value;
};

TableCheck check_table(const ComputedTable& table, const at::Tensor& tensor,
                       const MappedSource& source, std::size_t index) {
  const auto& entry = source.entries()[index];
  const auto axis = static_cast<std::size_t>(table.row_axis);
  TableCheck check;
  check.report = {table.name, tensor.size(table.row_axis), entry.sizes[axis], 0.0, true};
  const int64_t common = std::min(check.report.rows, check.report.file_rows);
  const at::Tensor recipe = table.compute();
  if (!recipe.defined() || recipe.numel() == 0 || common == 0) return check;

  const at::Tensor rows = source.head(index, table.row_axis, common);
  const at::Tensor expected = recipe.narrow(table.row_axis, 0, common).to(at::kDouble);
  check.report.max_abs = largest(rows.to(at::kDouble) - expected);
  double rounding = epsilon_of(tensor.scalar_type());
  for (const auto& part : entry.parts) {
    rounding = std::max(rounding, epsilon_of(source.entry_of(part).dtype));
  }
  const double bound = table.tolerance + rounding * largest(expected);
  check.report.as_computed = check.report.max_abs <= bound;  // false for NaN
  if (common == check.report.rows) {
    check.value = rows.to(tensor.scalar_type());
  } else {
    check.value = recipe.clone();
    check.value.narrow(table.row_axis, 0, common).copy_(rows);
  }
  return check;
}

}  // namespace

void LoadPlan::fault(WeightsErrorCode code, const std::string& name, const std::string& text,
                     const std::string& remedy) {
  mismatch_.faults.push_back({code, in_quotes(name) + " " + text, remedy});
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
  if (mismatch_.is_of_folder) return true;  // it has or will have memory of its own
  if (!is_dense_with_data(tensor)) {
    text = "must be dense and have memory in the module. Got a " +
           std::string(tensor.is_meta() ? "tensor on the meta device"
                                        : "sparse, quantised or nested tensor");
  } else if (tensor.is_inference() && !c10::InferenceMode::is_enabled()) {
    text = "must not be an inference tensor in the module; load inside InferenceMode";
  } else if (!can_resolve(tensor)) {
    text = "must not have the negative bit in the module, which LibTorch cannot resolve for " +
           type_name(tensor.scalar_type());
  } else if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    text = "must have an element for each of its indices in the module. Got an expanded tensor";
  }
  if (!text.empty()) fault(WeightsErrorCode::Module, target.name, text);
  return text.empty();
}

bool LoadPlan::check_dtype(std::size_t target, bool cast) {
  const std::string& name = targets_[target].name;
  const at::ScalarType expected = targets_[target].tensor.scalar_type();
  const auto& parts = source_.entries()[matches_[target].source].parts;
  bool is_cast = false, fits = true;
  for (const auto& part : parts) {
    const at::ScalarType type = source_.entry_of(part).dtype;
    if (type == expected) continue;
    const bool castable = can_cast(type, expected);
    is_cast = true;
    if (castable && cast) continue;
    fits = false;
    fault(WeightsErrorCode::DtypeMismatch, parts.size() > 1 ? part.name : name,
          "must have dtype " + type_name(expected) + ". Got " + type_name(type),
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
  const bool is_in_file = mismatch_.is_of_folder && entry.parts.size() == 1;
  if (!same)
    fault(WeightsErrorCode::ShapeMismatch, is_in_file ? entry.parts.front().name : name, text);
}

// The map that drops an entry's tensors, for messages.
std::string LoadPlan::without(std::size_t source, const std::string& prefix) const {
  std::string rules;
  for (const auto& part : source_.entries()[source].parts) {
    rules += (rules.empty() ? "{\"" : ", {\"") + part.name.substr(prefix.size()) + "\", \"\"}";
  }
  return "key_map({" + rules + "})";
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
    mismatch_.faults.push_back({WeightsErrorCode::TieConflict,
                                source_.label(kept.source) + " and " + source_.label(source) +
                                    " are one tensor in the module, but differ",
                                "choose one by dropping the other: LoadOptions()." +
                                    without(source, prefix) + " keeps the first"});
  }
}

// Tensors that have only a part of their memory in common: the one that is written last would
// replace values of the others. All of them fit, so that they can be written on trial.
void LoadPlan::check_overlaps(const std::string& prefix) {
  std::vector<bool> is_seen(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    std::vector<std::size_t> members;
    for (std::vector<std::size_t> next = {i}; !next.empty();) {
      const std::size_t at = next.back();
      next.pop_back();
      if (is_seen[at] || targets_[at].first != at || matches_[at].source == kNone) continue;
      is_seen[at] = true;
      members.push_back(at);
      next.insert(next.end(), sharing_[at].begin(), sharing_[at].end());
    }
    if (members.size() < 2) continue;
    std::sort(members.begin(), members.end());
    const auto conflict =
        find_conflict(targets_, members, [this](std::size_t target) { return value_of(target); });
    if (!conflict) continue;
    const std::size_t first = matches_[conflict->first].source;
    const std::size_t second = matches_[conflict->second].source;
    mismatch_.faults.push_back(
        {WeightsErrorCode::TieConflict,
         source_.label(first) + " and " + source_.label(second) +
             " overlap in the module's memory, but differ there",
         "choose one by dropping the other: LoadOptions().allow_missing(true)." +
             without(second, prefix) + " keeps the first"});
  }
}

}  // namespace posenc::io
