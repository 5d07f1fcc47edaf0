# SPDX-License-Identifier: Apache-2.0
"""A yes-or-no build setting (--//tools:cuda=false)."""

BoolSettingInfo = provider(fields = ["value"])

def _bool_setting_impl(ctx):
    return [BoolSettingInfo(value = ctx.build_setting_value)]

bool_setting = rule(
    implementation = _bool_setting_impl,
    build_setting = config.bool(flag = True),
)
