#pragma once

#include <functional>
#include <memory>
#include <string>

#include "models/config/settings.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"

namespace torch::nn {
class Module;
}

namespace posenc {

/// The module that a config.json describes.
struct DescribedModule {
  const char* caller;         ///< the public function that loads it
  const std::string& folder;  ///< of the config.json
  const Settings* settings;   ///< those that decide its sizes; null if others do
  /// Makes it as it is (null), or as it would be with other settings.
  std::function<std::shared_ptr<torch::nn::Module>(const Settings* changed)> make;
  const char* others = "";  ///< what decides its sizes without settings
};

/// A plan to load tensors into it, which is checked before a module that has memory is made:
/// apply_to() loads that. Throws c10::ValueError for settings with other sizes than those of the
/// tensors, and WeightsError as io::LoadPlan does, also for a tensor that contradicts others.
std::unique_ptr<io::LoadPlan> plan_of(const DescribedModule& described,
                                      const io::TensorSource& source, const LoadOptions& load,
                                      const io::FormatNames& names);

}  // namespace posenc
