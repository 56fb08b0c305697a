#include "support/devices.h"

#include <ATen/DeviceAccelerator.h>

namespace posenc::testing {

std::vector<torch::Device> devices() {
  std::vector<torch::Device> found = {torch::Device(torch::kCPU)};
  if (const auto kind = at::accelerator::getAccelerator(false)) {
    if (at::accelerator::deviceCount() > 0) found.emplace_back(*kind, 0);
  }
  return found;
}

std::string device_name(const ::testing::TestParamInfo<torch::Device>& info) {
  return c10::DeviceTypeName(info.param.type(), /*lower_case=*/true);
}

}  // namespace posenc::testing
