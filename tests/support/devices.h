#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

namespace posenc::testing {

/// The devices that tests run on: the CPU, the device for tests (test_device.h), which stands in
/// for accelerators on every machine, and a CUDA device where there is one.
std::vector<torch::Device> devices();

/// Base of tests that run on each device.
class OnEachDevice : public ::testing::TestWithParam<torch::Device> {
 protected:
  torch::Device device() const { return GetParam(); }
};

std::string device_name(const ::testing::TestParamInfo<torch::Device>& info);

}  // namespace posenc::testing

#define POSENC_ON_EACH_DEVICE(suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Device, suite, ::testing::ValuesIn(::posenc::testing::devices()), \
                           ::posenc::testing::device_name)
