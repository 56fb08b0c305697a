#include "posenc/train/checkpoint.h"

#include <optional>
#include <string>

#include "posenc/weights/manifest.h"
#include "train/checkpoint/generators.h"
#include "train/checkpoint/group_file.h"
#include "train/checkpoint/optimizer_state.h"
#include "train/checkpoint/scheduler_state.h"
#include "train/parallel/collectives.h"
#include "weights/common/file.h"
#include "weights/load/load_all.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

using Code = WeightsErrorCode;

constexpr const char* kSave = "save_checkpoint";
constexpr const char* kLoad = "load_checkpoint";
constexpr const char* kMark = "posenc.checkpoint";  // the metadata key that marks such a file
constexpr const char* kVersion = "1";
constexpr const char* kRankCount = "ranks";  // the number of processes, where there are several

// The values whose key begins with `prefix`, without it.
io::Values values_below(const io::Values& all, const std::string& prefix) {
  io::Values found;
  for (const auto& [key, value] : all) {
    if (key.starts_with(prefix)) found[key.substr(prefix.size())] = value;
  }
  return found;
}

bool has_any(const io::Values& all, const std::string& prefix) {
  const auto first = all.lower_bound(prefix);
  return first != all.end() && first->first.starts_with(prefix);
}

// The tensors whose name begins with `prefix`, by their full names.
StateDict tensors_of(const io::FileSource& source, const std::string& prefix) {
  const auto& entries = source.entries();
  io::refuse_colliding(entries.size(),
                       [&](std::size_t i) -> const std::string& { return entries[i].name; });
  StateDict found;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].name.starts_with(prefix)) continue;
    if (!entries[i].is_tensor) {
      throw WeightsError(Code::Unsupported, entries[i].fault).in_tensor(entries[i].name);
    }
    found.insert(entries[i].name, source.tensor(i));
  }
  return found;
}

void check_part(const std::string& what, bool in_file, bool in_run) {
  if (in_file == in_run) return;
  throw WeightsError(in_run ? Code::MissingKeys : Code::UnexpectedKeys,
                     in_run ? "has no " + what + ", but the run has one"
                            : "has the state of " + what + ", but the run has none");
}

const io::Values& values_of(const Manifest& manifest) {
  const auto& values = manifest.metadata;
  const auto mark = values.find(kMark);
  if (mark == values.end() || mark->second != kVersion) {
    throw WeightsError(Code::Unsupported,
                       "must be a file of save_checkpoint(), version 1. Got " +
                           (mark == values.end() ? "another" : "version " + mark->second),
                       "load_weights() reads weights alone");
  }
  return values;
}

CheckpointScalars numbers_of(const io::Values& values) {
  CheckpointScalars numbers;
  const auto own = values_below(values, "number.");
  for (const auto& [name, text] : own) io::read_value(own, name, numbers[name]);
  return numbers;
}

// A checkpoint that has been read and compared with a run, which it has not changed.
class Restore {
 public:
  Restore(const std::string& path, const TrainingRun& run) : source_(path) {
    const auto& values = values_of(source_.manifest());
    check_part("optimizer", has_any(values, "optimizer."), run.optimizer != nullptr);
    check_part("scheduler", io::has_scheduler(values), run.scheduler != nullptr);
    plan_.emplace(*run.module, source_, LoadOptions().prefix("model."));
    plan_->stage();
    if (run.optimizer != nullptr) {
      const auto names = io::parameter_names(*run.module, *run.optimizer, kLoad);
      const auto slots = io::slots_in(values, names, *run.optimizer, *run.module);
      optimizer_.emplace(*run.optimizer,
                         io::OptimizerRecord{tensors_of(source_, "optimizer."), values}, slots);
    }
    if (run.scheduler != nullptr) scheduler_.emplace(*run.scheduler, values);
    numbers_ = numbers_of(values);
    const int64_t ranks = values.count(kRankCount) != 0 ? io::read_count(values, kRankCount) : 1;
    generators_ = io::generator_states_of(tensors_of(source_, "generator."), ranks,
                                          run.group.rank(), run.group.size());
  }

  /// May fail, and then changes nothing. Comes before apply(), which cannot.
  void apply_generators() { io::set_generator_states(generators_); }
  void apply() {
    plan_->apply();
    if (optimizer_) optimizer_->apply();
    if (scheduler_) scheduler_->apply();
  }
  const CheckpointScalars& numbers() const { return numbers_; }

 private:
  io::FileSource source_;
  std::optional<io::LoadPlan> plan_;
  std::optional<io::OptimizerRestore> optimizer_;
  std::optional<io::SchedulerRestore> scheduler_;
  CheckpointScalars numbers_;
  StateDict generators_;
};

// On every process, or on none.
CheckpointScalars load(const std::string& path, const TrainingRun& run) {
  std::optional<Restore> restore;
  const StateDict generators = io::generator_states();
  try {
    parallel::all_or_none(
        run.group,
        [&] {
          restore.emplace(path, run);
          restore->apply_generators();
        },
        kLoad);
  } catch (...) {
    io::set_generator_states(generators);
    throw;
  }
  restore->apply();
  return restore->numbers();
}

void save(const std::string& path, const TrainingRun& run, const CheckpointScalars& numbers) {
  io::GroupTensors all;
  io::Values values = {{kMark, kVersion}};
  if (run.group.size() > 1)
    values[kRankCount] = io::to_text(static_cast<int64_t>(run.group.size()));
  const auto add = [&](const std::string& prefix, const StateDict& tensors) {
    for (const auto& item : tensors) all.tensors.insert(prefix + item.key(), item.value());
  };
  const auto module = io::module_state(*run.module);
  add("model.", module.tensors);
  for (const auto& table : module.tables) all.computed.insert("model." + table.name);
  add("", io::generator_states(run.group, kSave));
  if (run.optimizer != nullptr) {
    // A process whose optimiser cannot be saved must not leave the others waiting.
    io::OptimizerRecord record;
    parallel::all_or_none(
        run.group,
        [&] {
          record = io::record_of(*run.optimizer,
                                 io::parameter_names(*run.module, *run.optimizer, kSave));
        },
        kSave);
    add("", record.tensors);
    values.insert(record.values.begin(), record.values.end());
  }
  if (run.scheduler != nullptr) values.merge(io::scheduler_values(*run.scheduler));
  for (const auto& [name, number] : numbers) values["number." + name] = io::to_text(number);
  io::write_group_file(run.group, path, all, values, kSave);
}

}  // namespace

void save_checkpoint(const std::string& path, const TrainingRun& run,
                     const CheckpointScalars& numbers) {
  io::in_context(kSave, path, [&] { save(path, run, numbers); });
}

CheckpointScalars load_checkpoint(const std::string& path, const TrainingRun& run) {
  return io::in_context(kLoad, path, [&] { return load(path, run); });
}

CheckpointScalars checkpoint_numbers(const std::string& path) {
  return io::in_context("checkpoint_numbers", path,
                        [&] { return numbers_of(values_of(read_manifest(path))); });
}

}  // namespace posenc
