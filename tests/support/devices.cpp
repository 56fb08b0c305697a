#include "support/devices.h"

#include <ATen/Context.h>

#include "support/test_device/test_device.h"

namespace posenc::testing {

std::vector<torch::Device> devices() {
  std::vector<torch::Device> found = {torch::Device(torch::kCPU), test_device()};
  if (at::globalContext().hasCUDA()) found.emplace_back(torch::kCUDA, 0);
  return found;
}

std::string device_name(const ::testing::TestParamInfo<torch::Device>& info) {
  return c10::DeviceTypeName(info.param.type(), /*lower_case=*/true);
}

}  // namespace posenc::testing
