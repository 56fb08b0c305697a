#include "posenc/io/checkpoint.h"

#include <torch/optim/schedulers/lr_scheduler.h>

#include <limits>
#include <optional>

#include "io/base/context.h"
#include "io/checkpoint/generators.h"
#include "io/checkpoint/optimizer_state.h"
#include "io/load/colliding.h"
#include "io/load/file_source.h"
#include "io/load/load_plan.h"
#include "io/safetensors/writer.h"
#include "posenc/io/manifest.h"

namespace posenc {
namespace {

using Code = WeightsErrorCode;

constexpr const char* kMark = "posenc.checkpoint";  // the metadata key that marks such a file
constexpr const char* kVersion = "1";
constexpr const char* kStep = "scheduler.step";

// LibTorch exposes the count to derived classes only.
struct StepCount : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) {
    return scheduler.*(&StepCount::step_count_);
  }
};

void add_tensors(StateDict& all, const std::string& prefix, const StateDict& tensors) {
  for (const auto& item : tensors) all.insert(prefix + item.key(), item.value());
}

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

CheckpointScalars load(const io::FileSource& source, const TrainingRun& run) {
  const auto& values = values_of(source.manifest());
  check_part("optimizer", has_any(values, "optimizer."), run.optimizer != nullptr);
  check_part("scheduler", values.count(kStep) != 0, run.scheduler != nullptr);

  // Everything up to the next comment may fail, but changes nothing.
  const auto options = LoadOptions().prefix("model.");
  io::LoadPlan plan(*run.module, source, options);
  plan.stage();
  std::optional<io::OptimizerRestore> optimizer;
  if (run.optimizer != nullptr) {
    optimizer.emplace(*run.optimizer,
                      io::OptimizerRecord{tensors_of(source, "optimizer."), values});
  }
  unsigned step = 0;
  if (run.scheduler != nullptr) {
    constexpr auto kMost = std::numeric_limits<decltype(step)>::max();
    step = static_cast<unsigned>(io::read_count(values, kStep, kMost));
  }
  const CheckpointScalars numbers = numbers_of(values);
  const StateDict generators = tensors_of(source, "generator.");

  // From here on, only the first step may fail.
  io::set_generator_states(generators);
  plan.apply();
  if (optimizer) optimizer->apply();
  if (run.scheduler != nullptr) StepCount::of(*run.scheduler) = step;
  return numbers;
}

}  // namespace

void save_checkpoint(const std::string& path, const TrainingRun& run,
                     const CheckpointScalars& numbers) {
  io::in_context("save_checkpoint", path, [&] {
    StateDict tensors;
    io::Values values = {{kMark, kVersion}};
    add_tensors(tensors, "model.", state_dict(*run.module));
    add_tensors(tensors, "", io::generator_states());
    if (run.optimizer != nullptr) {
      const auto record = io::record_of(*run.optimizer);
      add_tensors(tensors, "", record.tensors);
      values.insert(record.values.begin(), record.values.end());
    }
    if (run.scheduler != nullptr) {
      values[kStep] = io::to_text(static_cast<int64_t>(StepCount::of(*run.scheduler)));
    }
    for (const auto& [name, number] : numbers) values["number." + name] = io::to_text(number);
    io::write_safetensors(path, tensors, values);
  });
}

CheckpointScalars load_checkpoint(const std::string& path, const TrainingRun& run) {
  return io::in_context("load_checkpoint", path, [&] { return load(io::FileSource(path), run); });
}

CheckpointScalars checkpoint_numbers(const std::string& path) {
  return io::in_context("checkpoint_numbers", path,
                        [&] { return numbers_of(values_of(read_manifest(path))); });
}

}  // namespace posenc
