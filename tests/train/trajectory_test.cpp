// Twenty steps of each optimiser against Python's, which runs live: bit for bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/python.h"
#include "support/threads.h"
#include "train/make_optimizer.h"
#include "weights/files.h"

namespace posenc::testing::trajectory_test {
namespace {

constexpr int kSteps = 20;

class Trajectory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
    folder_ = new TempDir;
    const std::string command = "cd '" + folder_->path().string() + "' && '" + POSENC_PYTHON +
                                "' -W ignore '" POSENC_TESTS_DIR
                                "/train/trajectories.py' . > log 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << read_bytes(*folder_ / "log");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  void SetUp() override { ASSERT_NE(folder_, nullptr); }

  static std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
      if (entry.path().extension() == ".safetensors") found.push_back(entry.path().stem().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static SafetensorsFile file(const std::string& name) {
    return load_safetensors(*folder_ / (name + ".safetensors"));
  }

  static TempDir* folder_;
};

TempDir* Trajectory::folder_ = nullptr;

// The gradient of parameter k in a step, of the same kind as Python's: dense, sparse or none.
torch::Tensor gradient(const StateDict& tensors, const torch::Tensor& parameter, int step, int k) {
  const std::string key = "grad." + std::to_string(step) + "." + std::to_string(k);
  if (tensors.contains(key)) return tensors[key].to(parameter.device());
  if (!tensors.contains(key + ".rows")) return {};
  const auto& values = tensors[key + ".values"];
  const auto sparse =
      at::sparse_coo_tensor(tensors[key + ".rows"].unsqueeze(0), values, parameter.sizes());
  return sparse._coalesced_(step % 2 == 1).to(parameter.device());
}

using Compare = std::function<::testing::AssertionResult(const at::Tensor&, const at::Tensor&)>;

void follow(const SafetensorsFile& file, const Compare& compare, at::Device device = at::kCPU) {
  const auto made = nlohmann::json::parse(file.metadata.at("case"));
  std::vector<torch::Tensor> parameters;
  while (file.tensors.contains("start." + std::to_string(parameters.size()))) {
    parameters.push_back(file.tensors["start." + std::to_string(parameters.size())]
                             .clone()
                             .to(device)
                             .set_requires_grad(true));
  }
  const auto optimizer =
      make_optimizer(made.at("optimizer"), made.at("options"), made.at("groups"), parameters);
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      parameters[k].mutable_grad() =
          gradient(file.tensors, parameters[k], step, static_cast<int>(k));
    }
    optimizer->step();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const auto key = "after." + std::to_string(step) + "." + std::to_string(k);
      ASSERT_TRUE(compare(parameters[k].detach().cpu(), file.tensors[key])) << key;
    }
  }
}

// Python sums a sparse momentum in the order in which rows arrived, ours in place.
bool has_momentum_of_rows(const std::string& name) {
  return name == "sgd_rows_momentum" || name == "sgd_rows_nesterov";
}

TEST_F(Trajectory, IsPythons) {
  ASSERT_EQ(names().size(), 34u);
  for (const auto& name : names()) {
    SCOPED_TRACE(name);
    if (has_momentum_of_rows(name)) {
      follow(file(name), [](auto& a, auto& b) { return within(Op::Training, a, b); });
    } else {
      follow(file(name), bit_equal);
    }
  }
}

TEST_F(Trajectory, DoesNotDependOnThreads) {
  for (const int threads : {1, 3}) {
    const Threads guard(threads);
    for (const char* name : {"adam", "adamw_options", "sgd_momentum", "sgd_rows", "sparse_adam"}) {
      SCOPED_TRACE(name);
      follow(file(name), bit_equal);
    }
  }
}

// Kernels of another device round differently; the code path is the same.
TEST_F(Trajectory, OnAnotherDeviceIsNear) {
  const auto all = devices();
  if (all.size() < 2) GTEST_SKIP() << "only the CPU is here";
  for (const char* name : {"adam_groups", "adam_amsgrad", "adamw_options", "sgd_nesterov",
                           "sgd_rows", "sparse_adam_options"}) {
    SCOPED_TRACE(name);
    follow(file(name), [](auto& a, auto& b) { return within(Op::Training, a, b); }, all.back());
  }
}

}  // namespace
}  // namespace posenc::testing::trajectory_test
