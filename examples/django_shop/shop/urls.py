"""The addresses of the shop."""

from django.urls import path

from examples.django_shop.shop import views

urlpatterns = [
    path("orders/<str:customer>", views.order),
    path("customer", views.customer),
]
