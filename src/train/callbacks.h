#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "posenc/train/trainer.h"

namespace posenc::train {

/// The modes, train or eval, of a module and of those below it.
class Modes {
 public:
  /// Those that `root` has now.
  explicit Modes(torch::nn::Module& root);
  /// Takes the modes that the modules have now.
  void record();
  /// Gives them back to the modules that still are in another one.
  void restore();
  /// Names of the modules that were in eval mode, to compare processes.
  std::string text() const;

 private:
  struct Part {
    std::string name;
    torch::nn::Module* module;
    std::shared_ptr<torch::nn::Module> owner;  // null for the root
    bool training;
  };
  void add(const std::string& name, torch::nn::Module& module,
           const std::shared_ptr<torch::nn::Module>& owner);
  std::vector<Part> parts_;  // parents before children
};

/// Puts a run into train mode: a part that is in eval mode while the whole is not stays in it. If
/// the whole is in eval mode, as after an evaluation, it gets the modes of `last`, if any.
std::unique_ptr<Modes> start_training(torch::nn::Module& root, Modes* last);

/// Runs `work`, and keeps what it throws unless something was thrown before.
template <typename Work>
void keep_first(std::exception_ptr& thrown, const Work& work) {
  try {
    work();
  } catch (...) {
    if (!thrown) thrown = std::current_exception();
  }
}

/// What a call of `report` has left.
struct Reported {
  bool options_changed = false;  ///< of the optimiser, in a group: the other processes need them
  bool wrote = false;            ///< weights or states, in a group: the processes' differ
  std::exception_ptr thrown;     ///< by `report`, or c10::ValueError for what does not fit the run
};
/// Calls `report` and puts back what is not the run's: modes and the default generators; in a
/// group, requires_grad as well.
Reported call_report(const TrainingRun& run, Modes& modes, const std::function<void()>& report);

/// Copies rank 0's options of the optimiser to all processes, which have the same names of them.
void share_options(const TrainingRun& run, const char* caller);

}  // namespace posenc::train
