"""From a conversation to the text that a model continues, in the format of the base model that the trial names."""

from stepwell.ptb.chat.template import ChatTemplate, NoTemplate, render, template_of

__all__ = ["ChatTemplate", "NoTemplate", "render", "template_of"]
